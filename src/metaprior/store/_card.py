"""The model card: what a reader of the folder needs to know."""

import html
import re
from typing import Any

from metaprior.belief import Prior, Settings, method_name, runs_held
from metaprior.findings import NOTHING_MEASURED, Findings, HeldOutScores, Replay
from metaprior.words import MISSING, counted, fixed, visible


def model_card(prior: Prior) -> str:
    """Markdown that says what the prior is, how good it is, and how to use it."""
    findings = prior.findings or NOTHING_MEASURED
    dimensions = "\n".join(
        f"- {_code(name)}: {_line(dimension)}"
        for name, dimension in zip(prior.space.names, prior.space.dimensions, strict=True)
    )
    settings = "\n".join(
        f"- {_code(name)}: {_line(value)}"
        for name, value in settings_in_words(prior.contents.settings).items()
    )
    learned_from = "\n".join(
        f"- {_line(name)}: {_line(value)}" for name, value in prior.trained_on.items()
    )
    method = method_name(prior.contents.settings)
    parts = [
        "# A learned prior",
        f"**{_line(findings.verdict)}**",
        f"""A prior over {_code(prior.quantity.name)}{_in_unit(prior.quantity.unit)}, to be
{prior.direction}d, learned by {method} from past runs. Use it on a new task of the same kind:

```python
import metaprior as mp

opt = mp.Optimizer(mp.load("this-folder"), seed=0)
x = opt.ask()
opt.tell(x, 0.0)  # the value you observed
```""",
        _held_out(findings),
        f"## Space\n\n{dimensions}",
        _features(prior),
        f"## Learned from\n\n{learned_from}",
        _outliers(findings),
        f"## Method: {method}\n\n{settings}",
        f"## What these files hold of past runs\n\n{_kept_of_runs(prior, findings)}",
        _listed("Notes", [_line(note) for note in findings.remarks]),
        _listed("When not to use it", limits(prior)),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def settings_in_words(settings: Settings, prefix: str = "") -> dict[str, Any]:
    """The settings of a method by name; those of a method inside it by `FPacohMap.kappa`."""
    flat: dict[str, Any] = {}
    for name, value in settings.items():
        if isinstance(value, dict) and "name" in value:
            flat |= settings_in_words(value, f"{value['name']}.")
        elif isinstance(value, dict) and set(value) == {"process"}:
            flat[prefix + name] = value["process"]
        elif name != "name":
            flat[prefix + name] = value
    return flat


def limits(prior: Prior) -> list[str]:
    """When not to use the prior, in sentences."""
    sentences = [
        "On tasks unlike the past ones: its uncertainty is calibrated for functions of the same "
        "kind only.",
        "Over another space, or for values of another kind or in another unit.",
    ]
    longest = prior.trained_on.get("longest run")
    if longest is not None:
        sentences.append(
            f"On runs much longer than the longest past run ({longest} points): its quality there "
            "was not measured."
        )
    return sentences


def _features(prior: Prior) -> str:
    """What was known of the past tasks, and the limits of the value."""
    lines = [f"{_code(feature.name)}: {_line(feature)}" for feature in prior.features.used]
    lines += [f"{_code(name)}: not used, since {_line(why)}" for name, why in prior.features.unused]
    limits = prior.value_bounds
    value = "" if limits is None else f"The value is between {limits[0]:g} and {limits[1]:g}."
    return "\n\n".join(part for part in (_listed("Task features", lines), value) if part)


def _kept_of_runs(prior: Prior, findings: Findings) -> str:
    """Which points of past runs are in the folder, in sentences."""
    held, shown = runs_held(prior.contents.arrays), len(findings.examples)
    sentences = []
    if held:
        sentences.append(
            f"The arrays hold the points of {counted(held, 'past run')}, with what a model fitted "
            "to each says of its values: they are asked for predictions."
        )
    if shown:
        sentences.append(f"`prior.json` holds points and values of {counted(shown, 'run')}.")
    if not sentences:
        sentences.append("No point of a past run.")
    sentences.append(
        "Bounds, choices, names of runs, and numbers about each run are in `prior.json`."
    )
    return " ".join(sentences)


def _held_out(findings: Findings) -> str:
    """A table of what was measured, with the baseline's scores beside the prior's."""
    held_out, replay = findings.held_out or HeldOutScores(), findings.replay or Replay()
    learned, baseline = held_out.learned, held_out.baseline
    errors = (learned.calibration_error, baseline.calibration_error)
    likelihoods = (learned.log_likelihood, baseline.log_likelihood)
    rows = []
    if findings.held_out is not None:
        rows.append(("calibration error (0 is perfect)", *(fixed(e, 3) for e in errors)))
        rows.append(("log-likelihood (higher is better)", *(fixed(v, 2) for v in likelihoods)))
    if replay.saved_evaluations is not None:
        saved = fixed(replay.saved_evaluations, 1)
        if replay.saved_interval is not None:
            low, high = replay.saved_interval
            saved += f" (95 % interval {fixed(low, 1)} to {fixed(high, 1)})"
        rows.append(("evaluations saved per run", saved, MISSING))
    if not rows:
        return ""
    body = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    header = f"| | this prior | {findings.baseline} |\n|---|---|---|"
    return f"## On held-out runs\n\n{header}\n{body}"


def _in_unit(unit: str) -> str:
    return f" in {_code(unit)}" if unit else ""


def _outliers(findings: Findings) -> str:
    """The past runs to check, by their names."""
    names = [_code(task.label) for task in findings.tasks if task.outlier]
    return _listed("Past runs to check: unlike the others", names)


def _listed(title: str, sentences: list[str]) -> str:
    listed = "\n".join(f"- {sentence}" for sentence in sentences)
    return f"## {title}\n\n{listed}" if sentences else ""


def _code(text: str) -> str:
    """A name as Markdown code, even if it contains backticks."""
    fence = "`" * (1 + max(map(len, re.findall("`+", text)), default=0))
    room = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{room}{_one_line(text)}{room}{fence}"


def _line(text: Any) -> str:
    """Text on one line, of which a renderer makes neither markup nor a link."""
    return html.escape(_one_line(text), quote=False).replace("](", "]\\(")


def _one_line(text: Any) -> str:
    return visible(" ".join(str(text).split()))
