"""The demo's numbers as tables, with a short account of how they came about."""

from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from metaprior.lab.demo import FPACOH


def print_report(found: dict[str, Any], console: Console) -> None:
    """Print tables of the numbers and how they came about."""
    sizes = found["sizes"]
    branin, mixture, sets = sizes["branin"], sizes["mixture"], sizes["num_mixture_sets"]
    times = f"{sets} times, each time " if sets > 1 else ""
    console.print()
    console.print(_regret_table(found, sizes["num_race_tasks"]))
    console.print(
        f"F-PACOH learned from {branin['num_tasks']} past runs of {branin['run_length']} queries, "
        "made by fixed GP-UCB on other tasks of the family. The fixed GP takes only the scale "
        "of the numbers from them. Both use UCB with beta = 2.",
        style="dim",
        highlight=False,
    )
    console.print(_speed_up_sentence(found["speed_up"]), style="bold", highlight=False)
    console.print()
    console.print(_prediction_table(found))
    console.print(
        f"Values of {sizes['num_prediction_tasks']} unseen functions at "
        f"{sizes['num_prediction_points']} uniform points each, predicted from 1 or 8 uniform "
        f"points; learned {times}from {mixture['num_tasks']} past runs of "
        f"{mixture['run_length']} queries. A calibration error of 0 is perfect; a higher "
        "log-likelihood is better.",
        style="dim",
        highlight=False,
    )


def _regret_table(found: dict[str, Any], num_tasks: int) -> Table:
    table = Table(
        title=f"Simple regret on {num_tasks} unseen Branin tasks: mean ± 95 % interval",
        title_justify="left",
        box=box.SIMPLE_HEAD,
    )
    table.add_column("")
    for t in found["simple_regret"][FPACOH]:
        table.add_column(f"{t} queries", justify="right", no_wrap=True)
    for name, regret in found["simple_regret"].items():
        cells = [
            f"{_short(at['mean'], 2)} ± {_short(at['half_width_95'], 1)}" for at in regret.values()
        ]
        table.add_row(name, *cells, style="bold" if name == FPACOH else None)
    return table


def _short(number: float, digits: int) -> str:
    """A few significant digits: 12, 0.47, 3.1e-5."""
    if abs(number) >= 100:
        return f"{number:.0f}"
    if abs(number) >= 0.01:
        return f"{number:.{digits}g}"
    return f"{number:.{digits - 1}e}".replace("e-0", "e-")


def _prediction_table(found: dict[str, Any]) -> Table:
    table = Table(
        title="Predictions of unseen 1-d mixtures from 1 and from 8 points",
        title_justify="left",
        box=box.SIMPLE_HEAD,
    )
    table.add_column("")
    measures = {
        "calibration_error": ("calibration error", "{:.3f}"),
        "log_likelihood": ("log-likelihood", "{:.2f}"),
        "coverage_of_95_percent": ("inside the 95 % band", "{:.0%}"),
    }
    for heading, _ in measures.values():
        table.add_column(heading, justify="right")
    for name, by_size in found["predictions"].items():
        cells = [
            "  ".join(form.format(at[measure]) for at in by_size.values())
            for measure, (_, form) in measures.items()
        ]
        table.add_row(name, *cells, style="bold" if name == FPACOH else None)
    return table


def _speed_up_sentence(found: dict[str, Any]) -> str:
    ours, theirs = found["queries_of_f_pacoh"], found["queries_of_fixed_gp"]
    if ours is None:
        return f"F-PACOH did not reach within {theirs} queries what the fixed GP reached."
    return (
        f"F-PACOH needs {ours} {'query' if ours == 1 else 'queries'} to reach what the fixed GP "
        f"reaches after {theirs}."
    )
