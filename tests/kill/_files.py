"""Scenes in files: runs, saved priors, and a lifelong sequence."""

import sys
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import numpy as np

import metaprior as mp
from metaprior.files import locked
from metaprior.lifelong import PriorSequence, Version, read_run, suggest, tell, untrained_prior
from tests.kill._engine import Say, Scene, hidden_in

SPACE = mp.Space(x=mp.Real(-1.0, 1.0), c=mp.Categorical(["a", "b"]))
EARLIER = Path(__file__).parents[1] / "store"
# Three priors of different methods, none of which needs JAX.
SAVED = [EARLIER / name for name in ("format_1/learned", "format_2/weighed_fpacoh_map")]
# A lock whose process has ended is taken at once, however slow the machine is.
PATIENCE = 5.0


class Telling(Scene):
    """Points suggested into a run's file, and values told."""

    def __init__(self, folder):
        super().__init__(folder)
        self.path = folder / "run.csv"
        self.prior = untrained_prior(SPACE, "maximize")

    def work(self, say: Say) -> None:
        for seed in count():
            suggest(self.prior, self.path, 1, seed=seed)
            say("row")
            value = round(float(np.random.uniform(0.0, 1.0)), 9)
            tell(self.prior, self.path, value, sure=True)
            say(f"value {value}")

    def check(self, said):
        rows = read_run(self.path, SPACE).rows if self.path.exists() else ()
        assert len(rows) >= said.count("row"), "a suggestion is lost"
        told = {row.value for row in rows if row.is_observed}
        lost = _numbers(said, "value") - told
        assert not lost, f"told and lost: {lost}"
        with locked(self.path, longest_wait=PATIENCE):
            pass
        assert len(hidden_in(self.folder)) <= 2, "litter grows"


class Saving(Scene):
    """One prior saved in the place of another."""

    def __init__(self, folder):
        super().__init__(folder)
        self.priors = [mp.load(path) for path in SAVED]
        self.path = folder / "prior"

    def work(self, say: Say) -> None:
        for i in count():
            self.priors[i % len(self.priors)].save(self.path)
            say("saved")

    def check(self, said):
        if not self.path.exists() or ("saved" not in said and not _has(self.path, "prior.json")):
            return
        found = mp.load(self.path)
        assert any(_same(found, prior) for prior in self.priors), "a prior that was never saved"
        # What a killed process has left goes with the next save: the rest is one prior, or two.
        assert len(list(self.path.iterdir())) <= 8, f"litter grows: {list(self.path.iterdir())}"


class SavingSeveral(Scene):
    """A folder of several priors, in the place of others."""

    longest = 0.6

    def __init__(self, folder):
        super().__init__(folder)
        first, second = (mp.load(path) for path in SAVED)
        one, two = untrained_prior(SPACE, "maximize"), untrained_prior(SPACE, "minimize")
        self.priors = [
            mp.Priors({"a": first}),
            mp.Priors({"a": second}),
            mp.Priors({"a": one, "b": two}),
        ]
        self.path = folder / "priors"

    def work(self, say: Say) -> None:
        for i in count():
            self.priors[i % len(self.priors)].save(self.path)
            say("saved")

    def check(self, said):
        if "saved" not in said and not _has(self.path, "priors.json"):
            return
        found = mp.load_priors(self.path)
        matching = [
            known
            for known in self.priors
            if list(known.learned) == list(found.learned)
            and all(_same(found[name], known[name]) for name in known.learned)
        ]
        assert len(matching) == 1, "priors of two saves"
        assert len(list(self.path.rglob("*"))) <= 30, "litter grows"


class Optimising(Scene):
    """A run in Python, saved after every value."""

    def __init__(self, folder):
        super().__init__(folder)
        self.path = folder / "run.json"
        self.prior = untrained_prior(SPACE, "maximize")

    def work(self, say: Say) -> None:
        run = mp.Optimizer(self.prior)
        if self.path.exists():
            run = mp.Optimizer.load(self.path, self.prior)
        while True:
            run.tell(run.ask(), float(len(run.observations)))
            run.save(self.path)
            say(f"value {run.observations[-1][1]}")

    def check(self, said):
        told = _numbers(said, "value")
        if not told and not self.path.exists():
            return
        found = mp.Optimizer.load(self.path, self.prior)
        assert told <= {value for _, value in found.observations}, "told and lost"
        assert len(hidden_in(self.folder)) <= 1, "litter grows"


class Sequence(Scene):
    """A lifelong sequence in a folder: runs, told and finished; learning takes no time."""

    longest = 1.0

    def __init__(self, folder):
        super().__init__(folder)
        self.path = folder / "machine"

    def work(self, say: Say) -> None:
        without_training()
        sequence = PriorSequence.begin(self.path, space=SPACE)
        while True:
            run = f"run{len(sequence.ledger.finished)}"
            for seed in range(2):
                sequence.suggest(run, 1, seed=seed)
                value = round(float(np.random.uniform(0.0, 1.0)), 9)
                sequence.tell(run, value, sure=True)
                say(f"value {value}")
            sequence.finish(run)
            say(f"finished {run}")

    def check(self, said):
        if not said and not _has(self.path, "lifelong.json"):
            return
        sequence = PriorSequence(self.path)
        ledger = sequence.ledger
        finished = {line.split()[1] for line in said if line.startswith("finished")}
        assert finished <= set(ledger.finished), "a finished run is lost"
        rows = [row for path in (self.path / "runs").glob("*.csv") for row in _rows(path)]
        assert _numbers(said, "value") <= {row.value for row in rows}, "told and lost"
        folders = sorted((self.path / "priors").glob("[0-9]*"))
        for version in ledger.versions:
            assert mp.load(sequence.prior_folder(version.number)).space == SPACE
        for folder in folders:  # a version that is saved, and not yet in the ledger
            assert not _has(folder, "prior.json") or mp.load(folder).space == SPACE
        assert len(folders) <= len(ledger.versions) + 1, "folders that no version has"
        for path in (self.path / "lifelong.json", self.path / "priors"):
            with locked(path, longest_wait=PATIENCE):
                pass
        assert len(hidden_in(self.folder)) <= 8, "litter grows"


def without_training() -> None:
    """Put a stand-in for learning in its place, which needs no JAX: only this process is to be
    killed."""

    def learn_version(number, tasks, names, *, before, **options):
        by_run = {str(name): float(number) for name in names}
        version = Version(number, list(names), float(number), by_run, 1.0, True, "It is newer.")
        return version, untrained_prior(tasks.space, tasks.direction)

    name = "metaprior.lifelong._learning"
    sys.modules[name] = SimpleNamespace(learn_version=learn_version)  # pyright: ignore


def _rows(path: Path):
    return read_run(path, SPACE).rows


def _numbers(said: list[str], kind: str) -> set[float]:
    return {float(line.split()[1]) for line in said if line.startswith(f"{kind} ")}


def _has(folder: Path, name: str) -> bool:
    return (folder / name).exists()


def _same(prior: mp.Prior, other: mp.Prior) -> bool:
    mine, theirs = prior.contents.arrays, other.contents.arrays
    same = (prior.space, prior.direction) == (other.space, other.direction)
    return (
        same
        and mine.keys() == theirs.keys()
        and all(np.array_equal(mine[name], theirs[name]) for name in mine)
    )
