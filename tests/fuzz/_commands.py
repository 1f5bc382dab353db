"""The commands, with damaged files and whatever comes to hand as options."""

from importlib import import_module
from pathlib import Path

import numpy as np
from typer.testing import CliRunner

from metaprior.cli._app import app
from metaprior.data.csv import space_as_toml
from metaprior.lifelong import untrained_prior
from tests.fuzz._damage import TOKENS, choice, damaged_bytes, damaged_text
from tests.fuzz._tables import RUN_FILES, RUNS, SPACE

# Commands import what they need when they run; that takes longer than a case may.
for _module in ("adapters.optuna", "learning", "report"):
    import_module(f"metaprior.{_module}")
# An argument of a process holds no zero byte, and no half of a character.
WORDS = [word for word in TOKENS if "\x00" not in word and word.isprintable()]
OPTIONS = ("--seed", "-n", "--row", "--value", "--direction", "--feature", "--restore", "--name")


def commands(rng: np.random.Generator, folder: Path) -> None:
    """One command: exit code 0, or 2 and one sentence, and no secret in it."""
    run, prior, machine = folder / "run.csv", folder / "prior", folder / "machine"
    run.write_text(choice(rng, RUN_FILES))
    untrained_prior(SPACE, "maximize").save(prior)
    (folder / "space.toml").write_text(space_as_toml(SPACE))
    past = folder / "past.csv"
    past.write_text(choice(rng, RUNS))
    files = [run, prior / "prior.json", folder / "space.toml", past]
    damaged = choice(rng, files)
    if rng.random() < 0.7:
        damage = damaged_bytes(rng, damaged.read_bytes())
        text = damaged_text(rng, damaged.read_text())
        damaged.write_bytes(damage if rng.random() < 0.5 else text)
    arguments = [str(each) for each in _command(rng, run, prior, machine, past)]
    if rng.random() < 0.4:
        arguments += [choice(rng, OPTIONS), choice(rng, WORDS)]
    done = CliRunner().invoke(app, arguments)
    if isinstance(done.exception, Exception):
        raise done.exception
    assert done.exit_code in (0, 2), f"exit code {done.exit_code} of {arguments}"
    assert "Traceback" not in done.output and "hunter2" not in done.output
    if done.exit_code:
        # What the parser of options says has a frame around it.
        raise ValueError(_sentence(done.stderr))


def _command(rng: np.random.Generator, run: Path, prior: Path, machine: Path, past: Path) -> list:
    address = f"postgresql+none://me:hunter2@{choice(rng, ('h', 'h:x', 'x@h', ''))}/db"
    begin = ("--space", machine.parent / "space.toml", "--direction", "minimize")
    return choice(
        rng,
        [
            ["suggest", "--prior", prior, "--run", run],
            ["suggest", "--prior", prior, "--run", run, "-n", 10**9],
            ["suggest", "--lifelong", machine, "--run", choice(rng, WORDS), *begin],
            ["tell", "--prior", prior, "--run", run, choice(rng, (*WORDS, "1,5", "2"))],
            ["status", "--prior", prior, "--run", run],
            ["status", choice(rng, (address, f"optuna:{address}")), "--name", "ovens"],
            ["status", "--lifelong", machine],
            ["report", prior, "--feature", choice(rng, WORDS)],
            # A single run is too few to learn from, so that this ends with the reading of it.
            ["learn", past, "--out", machine / "prior", "--space", machine.parent / "space.toml"],
        ],
    )


def _sentence(said: str) -> str:
    lines = [line for line in said.splitlines() if line.strip()]
    if lines and lines[0].startswith("Usage:"):
        return "The options were refused."
    return "\n".join(lines)
