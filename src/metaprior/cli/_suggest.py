"""`metaprior suggest`: the next points of a run, written into its file and on the screen."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import typer

from metaprior.bo import Expectation, StoppingHint
from metaprior.cli._features import features_from
from metaprior.cli._terminal import say
from metaprior.data import Quantity
from metaprior.data.csv import read_space
from metaprior.lifelong import PriorSequence, Row, suggest
from metaprior.store import load


def run_suggest(
    run: str,
    *,
    prior: Path | None,
    lifelong: Path | None,
    space: Path | None,
    direction: str | None,
    value: str | None,
    unit: str | None,
    features: Sequence[str],
    n: int,
    seed: int,
    as_json: bool,
) -> None:
    """Suggest the next `n` points, with a prior or with the version in use of a sequence."""
    require_one(prior, lifelong)
    if prior is not None:
        _refuse_beginning(space=space, direction=direction, value=value, unit=unit)
        known = features_from(features)
        used = load(prior)
        file, found = Path(run), suggest(used, run, n, seed=seed, features=known)
    else:
        assert lifelong is not None
        if features:
            raise ValueError(
                "--feature is for a prior that was learned with features of tasks, not for a "
                "lifelong sequence; leave it out."
            )
        sequence = _sequence(lifelong, space, direction, _quantity(value, unit))
        used = sequence.prior
        file, found = sequence.run_file(run), sequence.suggest(run, n, seed=seed)
    pairs = list(zip(found.rows, found.expected, strict=True))
    if as_json:
        rows = [{**as_dict(row), "expected": expected._asdict()} for row, expected in pairs]
        answer = {"run": str(file), "rows": rows, "stopping": stopping_as_dict(found.stopping)}
        typer.echo(json.dumps(answer, indent=2, allow_nan=False))
        return
    for row, expected in pairs:
        say(f"row {row.number}: {in_words(row.point)}")
        say(f"  {expected_in_words(expected, used.quantity)}")
    if found.stopping is not None:
        say(stopping_in_words(found.stopping, used.quantity))
    say(f"Written to {file}; fill in the value there, or with `metaprior tell`.")


def require_one(prior: Path | None, lifelong: Path | None) -> None:
    """Make sure that one of the two was given, and not both."""
    if (prior is None) == (lifelong is None):
        raise ValueError(
            "Give either --prior with the folder of a prior, or --lifelong with the folder of a "
            "sequence."
        )


def as_dict(row: Row) -> dict[str, Any]:
    """A row for programs."""
    return {"row": row.number, "point": row.point}


def in_words(point: dict[str, Any]) -> str:
    """A point on one line."""
    return ", ".join(f"{name} = {value}" for name, value in point.items())


def expected_in_words(expected: Expectation, quantity: Quantity) -> str:
    """What is expected of a point, and its chance to be the best so far."""
    value = quantity.with_unit(f"{expected.value:.4g} +- {expected.std:.2g}")
    words = f"expected {quantity.name}: {value} (one standard deviation)"
    if expected.chance is None:
        return words
    return f"{words}; chance to beat the best so far: {_per_cent(expected.chance)}"


def stopping_in_words(hint: StoppingHint, quantity: Quantity) -> str:
    """What is left to be gained, and whether to go on."""
    left, near = (
        quantity.with_unit(f"{number:.2g}") for number in (hint.improvement_left, hint.tolerance)
    )
    advice = ": you may stop" if hint.is_done() else ""
    return (
        f"Improvement left: about {left}; the probability that the best is within {near} of the "
        f"optimum is {_per_cent(hint.probability)}{advice}."
    )


def stopping_as_dict(hint: StoppingHint | None) -> dict[str, Any] | None:
    return None if hint is None else {**hint._asdict(), "done": hint.is_done()}


def _per_cent(probability: float) -> str:
    if 0.01 <= probability <= 0.99:
        return f"{100 * probability:.0f} %"
    return "less than 1 %" if probability < 0.5 else "more than 99 %"


def _refuse_beginning(**options: Any) -> None:
    """Raise an error for options that begin a sequence, if any is given."""
    given = [name for name, received in options.items() if received is not None]
    if given:
        raise ValueError(
            f"--{given[0]} is for a new lifelong sequence, not for a prior; leave it out, or give "
            "--lifelong instead of --prior."
        )


def _quantity(value: str | None, unit: str | None) -> Quantity | None:
    if value is None and unit is None:
        return None
    return Quantity.of_column(Quantity().name if value is None else value, unit)


def _sequence(
    folder: Path, space: Path | None, direction: str | None, quantity: Quantity | None
) -> PriorSequence:
    if space is not None:
        return PriorSequence.begin(
            folder,
            space=read_space(space),
            direction=direction or "maximize",
            quantity=quantity,
        )
    sequence = PriorSequence(folder)
    if direction not in (None, sequence.ledger.direction):
        raise ValueError(
            f"The value of the sequence in {folder} is {sequence.ledger.direction}d; leave "
            "--direction out."
        )
    if quantity not in (None, sequence.ledger.quantity):
        raise ValueError(
            f"The value of the sequence in {folder} is called "
            f"{sequence.ledger.quantity.label!r}; leave --value and --unit out."
        )
    return sequence
