"""A lifelong sequence in a folder: runs of one machine, and a prior that learns from each.

machine/lifelong.json     the ledger
machine/runs/*.csv        runs, readable by a spreadsheet program
machine/priors/0001/      versions of the prior
"""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from metaprior.belief import Prior
from metaprior.data import Quantity, Space, Tasks, direction_sign
from metaprior.data.csv import Row, read_run
from metaprior.files import as_path, locked, unwriteable
from metaprior.lifelong._asking import RunStatus, Suggestions, status, suggest, tell
from metaprior.lifelong._ledger import LEDGER, Ledger, read_ledger, write_ledger
from metaprior.lifelong._past_runs import LONGEST_NAME, names_for, require_like, write_past_run
from metaprior.lifelong._versions import FEWEST_RUNS, Version, untrained_prior
from metaprior.store import PriorFileError, load, require_writeable
from metaprior.words import shortened

if TYPE_CHECKING:
    from metaprior.learning import OnLearnProgress
else:  # importing it imports JAX
    OnLearnProgress = Any

RUNS, PRIORS = "runs", "priors"
# How long to wait for another process that is learning, in seconds.
LONGEST_LEARNING = 3600.0


class PriorSequence:
    """The lifelong sequence in `folder`, which must exist; see `begin` for a new one.

    Several processes may use it at once: the ledger and the runs are locked while they change.
    """

    def __init__(self, folder: str | Path):
        self.folder = as_path(folder, "folder")
        read_ledger(self.folder)

    @classmethod
    def begin(
        cls,
        folder: str | Path,
        *,
        space: Space,
        direction: str = "maximize",
        quantity: Quantity | None = None,
    ) -> "PriorSequence":
        """The sequence in `folder`; if there is none yet, a new one over `space`.

        - `quantity`: what the value is called, and its unit: `Quantity("yield", "%")`.
        """
        folder = as_path(folder, "folder")
        direction_sign(direction)
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise unwriteable(folder, error) from None
        with locked(folder / LEDGER):
            if not (folder / LEDGER).exists():
                new = Ledger(space, direction, quantity=quantity or Quantity())
                write_ledger(folder, new)
        sequence = cls(folder)
        known = sequence.ledger
        if (known.space, known.direction) != (space, direction):
            raise ValueError(
                f"There is a sequence over {known.space} in {folder}, whose value is "
                f"{known.direction}d; leave --space and --direction out, or name another folder."
            )
        if quantity not in (None, known.quantity):
            raise ValueError(
                f"The value of the sequence in {folder} is called {known.quantity.label!r}; leave "
                "--value and --unit out, or name another folder."
            )
        return sequence

    def add(self, tasks: Tasks) -> list[str]:
        """Make past runs part of the sequence, finished: what each is called there.

        They are written into run files; `learn` learns from them. Runs that the sequence has are
        left as they are.

        - `tasks`: over the space of the sequence, without features, such as `read_runs` returns.
        """
        names = names_for(tasks)
        with locked(self.folder / LEDGER):
            ledger = self.ledger
            require_like(ledger, tasks, self.folder)
            (self.folder / RUNS).mkdir(exist_ok=True)
            for index, name in enumerate(names):
                write_past_run(self.run_file(name), tasks, index, ledger.quantity)
            write_ledger(self.folder, ledger.with_finished(names))
        return names

    @property
    def ledger(self) -> Ledger:
        """What the ledger says now."""
        return read_ledger(self.folder)

    @property
    def prior(self) -> Prior:
        """The version in use; before the first, a non-transfer GP."""
        ledger = self.ledger
        if ledger.current is None:
            return untrained_prior(ledger.space, ledger.direction, ledger.quantity)
        try:
            return load(self.prior_folder(ledger.current), space=ledger.space)
        except PriorFileError as error:
            raise PriorFileError(
                f"{str(error).removesuffix('.')}, or go back to another version with `metaprior "
                f"status --lifelong {self.folder} --restore N`."
            ) from None

    def prior_folder(self, number: int) -> Path:
        return self.folder / PRIORS / f"{number:04d}"

    def run_file(self, run: str) -> Path:
        """Where the run of that name is kept."""
        name = run.removesuffix(".csv")
        forbidden = any(mark in name for mark in "/\\:") or not name.isprintable()
        if not name or name.startswith(".") or forbidden or len(name.encode()) > LONGEST_NAME:
            raise ValueError(
                f"A run cannot be called {shortened(run)}; give a short name without slashes, "
                "colons, control characters and a leading dot, such as 2024-05-17."
            )
        return self.folder / RUNS / f"{name}.csv"

    def suggest(self, run: str, n: int = 1, *, seed: int = 0) -> Suggestions:
        """The next `n` points of the run, appended to its file (created if missing)."""
        path = self._open(run)
        try:
            path.parent.mkdir(exist_ok=True)
        except OSError as error:
            raise unwriteable(path, error) from None
        return suggest(self.prior, path, n, seed=seed)

    def tell(
        self, run: str, value: float | str | None, *, row: int | None = None, sure: bool = False
    ) -> Row:
        """Write a value into the file of the run; see `metaprior.lifelong.tell`."""
        return tell(self.prior, self._existing(self._open(run)), value, row=row, sure=sure)

    def status(self, run: str) -> RunStatus:
        """Where the run stands."""
        return status(self.prior, self._existing(self.run_file(run)))

    def finish(
        self,
        run: str,
        *,
        budget: str | float = "normal",
        seed: int = 0,
        on_progress: OnLearnProgress | None = None,
    ) -> Version | None:
        """End the run: it becomes a task, and the prior is learned anew from all finished runs.

        Returns the new version, kept or not; `None` if there are too few runs, or if one has been
        learned from all of them. If learning fails or is interrupted, the run is finished all the
        same, the version in use stays so, and the next call learns from it.
        """
        path = self._existing(self.run_file(run))
        known = self.ledger
        if not read_run(path, known.space, quantity=known.quantity).observed:
            raise ValueError(
                f"{path} has no value yet, so there is nothing to learn; tell one before --finish."
            )
        with locked(self.folder / LEDGER):
            write_ledger(self.folder, self.ledger.with_finished([path.stem]))
        return self.learn(budget=budget, seed=seed, on_progress=on_progress)

    def learn(
        self,
        *,
        budget: str | float = "normal",
        seed: int = 0,
        on_progress: OnLearnProgress | None = None,
    ) -> Version | None:
        """Learn from all finished runs, unless that has been done or there are too few."""
        from metaprior.lifelong._learning import learn_version

        # Only learning waits for learning: other processes use the ledger meanwhile.
        with locked(self.folder / PRIORS, longest_wait=LONGEST_LEARNING):
            ledger = self.ledger
            if len(ledger.finished) < FEWEST_RUNS or ledger.is_up_to_date:
                return None
            # Before the hours of learning, not after them.
            require_writeable(self.prior_folder(ledger.next_number))
            used = ledger.in_use
            version, prior = learn_version(
                ledger.next_number,
                self._tasks(ledger),
                ledger.finished,
                before=None if used is None else (used, self.prior),
                budget=budget,
                seed=seed,
                on_progress=on_progress,
            )
            # In this order: what the ledger names is on the disk, whole.
            prior.save(self.prior_folder(version.number))
            with locked(self.folder / LEDGER):
                write_ledger(self.folder, self.ledger.with_version(version, since=ledger))
        return version

    def restore(self, number: int) -> Version:
        """Use version `number` from now on."""
        with locked(self.folder / LEDGER):
            ledger = self.ledger
            version = ledger.version(number)
            load(self.prior_folder(number), space=ledger.space)
            restored = replace(ledger, current=number, restorations=ledger.restorations + 1)
            write_ledger(self.folder, restored)
        return version

    def _tasks(self, ledger: Ledger) -> Tasks:
        runs = []
        for name in ledger.finished:
            path = self._existing(self.run_file(name))
            rows = read_run(path, ledger.space, quantity=ledger.quantity).observed
            if not rows:
                raise ValueError(
                    f"The finished run {name} has no values any more; repair "
                    f"{self.run_file(name)}, or restore it from a copy."
                )
            runs.append(([row.point for row in rows], [row.value for row in rows]))
        return Tasks.from_runs(
            runs,
            space=ledger.space,
            direction=ledger.direction,
            names=ledger.finished,
            quantity=ledger.quantity,
        )

    def _open(self, run: str) -> Path:
        path = self.run_file(run)
        if path.stem in self.ledger.finished:
            raise ValueError(f"The run {path.stem} is finished; begin another one by its name.")
        return path

    def _existing(self, path: Path) -> Path:
        if not path.exists():
            raise ValueError(
                f"There is no run {path.stem} ({path}); begin it with `metaprior suggest`."
            )
        return path
