"""The option `--budget` of the commands that learn."""

from metaprior.words import shortened

BUDGETS = ("fast", "normal", "thorough")


def budget_of(text: str) -> str | float:
    """One of the named budgets, or seconds."""
    if text in BUDGETS:
        return text
    try:
        seconds = float(text)
    except ValueError:
        seconds = float("nan")
    if not 0 < seconds < float("inf"):
        raise ValueError(
            f"--budget is {shortened(text)}; give fast, normal, thorough, or a number of seconds "
            "above 0."
        )
    return seconds
