"""The benchmark with a conditional space: past studies, a prior learned from them, and a sampler on
unseen tasks."""

import importlib.util
import json
import re
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import optuna
from jaxtyping import Float
from optuna.samplers import BaseSampler, GPSampler, RandomSampler, TPESampler
from optuna.storages import InMemoryStorage

from benchmarks._studies import OURS, new_study, suggested
from metaprior.lab.environments import (
    MODEL_SELECTION,
    ModelSelectionTask,
    model_selection_tasks,
    model_selection_tuning_tasks,
)
from metaprior.metrics import simple_regret

# Priors from this number on are for choosing how a method works, on tasks of their own.
TUNING = 1000
# What comes from the past takes the place of the ten random trials that GPSampler begins with.
NUM_ENQUEUED = 10
PAST_BEST = "past's best, then GPSampler"


@dataclass(frozen=True)
class Plan:
    """How one prior is made and judged.

    - `past`, `past_trials`: studies by TPESampler to learn from, and trials of each.
    - `tasks`, `trials`: unseen tasks, and the trials of every sampler on each.
    """

    prior: int
    past: int
    past_trials: int
    tasks: int
    trials: int
    budget: str


@dataclass(frozen=True)
class Arm:
    """A way to optimise a new task.

    - `sampler`: from the folder of the learned prior and a seed.
    - `enqueued`: which of the orders of past configurations is tried first, if any.
    - `flat`: the objective asks for every parameter in every trial and uses the active ones.
    """

    sampler: Callable[[Path, int], BaseSampler]
    enqueued: str | None = None
    flat: bool = False
    needs_torch: bool = False
    needs_prior: bool = False


def _ours(folder: Path, seed: int) -> BaseSampler:
    from metaprior.adapters.optuna import MetaPriorSampler

    return MetaPriorSampler(folder, seed=seed)


def _gaussian_process(folder: Path, seed: int) -> BaseSampler:
    return GPSampler(seed=seed, warn_independent_sampling=False)


SEEN, EVALUATED = "seen", "evaluated"
ARMS = {
    OURS: Arm(_ours, needs_prior=True),
    PAST_BEST: Arm(_gaussian_process, SEEN, needs_torch=True),
    f"{PAST_BEST}, all parameters": Arm(_gaussian_process, SEEN, flat=True, needs_torch=True),
    f"{PAST_BEST}, evaluated on every past task": Arm(
        _gaussian_process, EVALUATED, needs_torch=True
    ),
    "GPSampler": Arm(_gaussian_process, needs_torch=True),
    "GPSampler, all parameters": Arm(_gaussian_process, flat=True, needs_torch=True),
    "TPESampler": Arm(lambda folder, seed: TPESampler(seed=seed)),
    "random": Arm(lambda folder, seed: RandomSampler(seed=seed)),
}


def available_arms() -> list[str]:
    """Those that can run here: Optuna's GPSampler needs PyTorch."""
    has_torch = importlib.util.find_spec("torch") is not None
    return [name for name, arm in ARMS.items() if has_torch or not arm.needs_torch]


def prepare(plan: Plan, out: Path) -> None:
    """The past studies of a prior, in the folder `prior-N`; those that are there stay."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    database = _folder(plan, out) / "past.db"
    if not database.exists():
        make_past(draw(plan)[0], database, plan)


def evaluate(plan: Plan, name: str, out: Path) -> str:
    """One arm on the unseen tasks of one prior; a finished study is a line of the arm's file.

    What is in the file already is not done again, and a learned prior is kept.
    """
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    arm, folder = ARMS[name], _folder(plan, out)
    records = folder / f"{re.sub(r'[^a-zA-Z]+', '-', name)}.jsonl"
    done = _finished(records, {"plan": asdict(plan), "arm": name})
    past, unseen = draw(plan)
    if arm.needs_prior and not (folder / "prior").exists():
        _append(records, {"learned_in": learn(folder, plan)})
    enqueued = _enqueued(arm, folder / "past.db", past)
    for i, task in enumerate(unseen):
        if task.name not in done:
            sampler = arm.sampler(folder / "prior", 1000 * plan.prior + i)
            outcome = run_study(task, sampler, plan.trials, enqueued, flat=arm.flat)
            _append(records, {"task": task.name, **outcome})
    return f"prior {plan.prior}, {name}"


def _enqueued(arm: Arm, database: Path, past: list[ModelSelectionTask]) -> list[dict[str, Any]]:
    if arm.enqueued is None:
        return []
    studies = past_studies(database, past)
    judges = past if arm.enqueued == EVALUATED else studies
    return ordered(studies, judges)[:NUM_ENQUEUED]


def draw(plan: Plan) -> tuple[list[ModelSelectionTask], list[ModelSelectionTask]]:
    """The tasks of the past and the unseen ones, no task in both."""
    tuning = plan.prior >= TUNING
    every = model_selection_tuning_tasks() if tuning else model_selection_tasks()
    if plan.past + plan.tasks > len(every):
        raise ValueError(
            f"Prior {plan.prior} needs {plan.past} past and {plan.tasks} unseen tasks, and there "
            f"are {len(every)} in all; ask for fewer with --past and --tasks."
        )
    order = np.random.default_rng(plan.prior).permutation(len(every))
    drawn = [every[i] for i in order[: plan.past + plan.tasks]]
    return drawn[: plan.past], drawn[plan.past :]


def make_past(tasks: list[ModelSelectionTask], database: Path, plan: Plan) -> None:
    """An SQLite storage with a study by TPESampler for every task."""
    made = database.with_suffix(".part")
    made.unlink(missing_ok=True)
    memory = InMemoryStorage()  # a file would be waited for after every trial
    for i, task in enumerate(tasks):
        sampler = TPESampler(seed=1000 * plan.prior + 500 + i)
        study = new_study(sampler, memory, task.name)
        study.optimize(
            lambda trial, task=task: task.evaluate(suggested(trial, MODEL_SELECTION)),
            plan.past_trials,
        )
        optuna.copy_study(
            from_study_name=task.name, from_storage=memory, to_storage=f"sqlite:///{made}"
        )
    made.rename(database)


def learn(folder: Path, plan: Plan) -> float:
    """Learn a prior from the past studies and save it; the CPU time that it took, in seconds."""
    import metaprior as mp

    start = time.process_time()
    history = mp.adapters.optuna.read_history(f"sqlite:///{folder / 'past.db'}")
    prior = mp.learn(history.tasks, budget=plan.budget, seed=plan.prior)
    prior.save(folder / "learning")
    (folder / "learning").rename(folder / "prior")
    (folder / "notes.txt").write_text("\n".join(history.notes) + "\n")
    return time.process_time() - start


def run_study(
    task: ModelSelectionTask,
    sampler: BaseSampler,
    num_trials: int,
    enqueued: Iterable[dict[str, Any]] = (),
    *,
    flat: bool = False,
) -> dict[str, list[float]]:
    """Regret after each trial in units of the gap between the task's median and its best value,
    and the CPU time of each suggestion."""
    study = new_study(sampler)
    for configuration in enqueued:
        study.enqueue_trial(configuration)
    values, seconds = [], []
    for _ in range(num_trials):
        start = time.process_time()
        trial = study.ask()
        point = suggested(trial, MODEL_SELECTION, flat=flat)
        seconds.append(time.process_time() - start)
        values.append(task.evaluate(point))
        study.tell(trial, values[-1])
    regret = simple_regret(task.best, values) / (task.best - task.median)
    return {"regret": regret.tolist(), "seconds": seconds}


def past_studies(database: Path, tasks: list[ModelSelectionTask]) -> list[ModelSelectionTask]:
    """What each past study knows of its task: the trials are the only rows."""
    found = []
    for task in tasks:
        study = optuna.load_study(study_name=task.name, storage=f"sqlite:///{database}")
        trials = [trial for trial in study.trials if trial.value is not None]
        values = [float(trial.value) for trial in trials if trial.value is not None]
        found.append(
            ModelSelectionTask.from_rows(task.name, [trial.params for trial in trials], values)
        )
    return found


def ordered(
    studies: list[ModelSelectionTask], judges: list[ModelSelectionTask]
) -> list[dict[str, Any]]:
    """The best configuration of each study, greedily ordered.

    - `judges`: what says how good a configuration is on each past task: the studies themselves,
      by their nearest trial of the same branch (a branch without trials has the study's median), or
      the tasks, which no user could ask for nothing.
    """
    best = [max(study.rows(), key=lambda row: row[1])[0] for study in studies]
    regret = np.array([[_regret(judge, each) for judge in judges] for each in best])
    return [best[i] for i in greedy_order(regret)]


def _regret(judge: ModelSelectionTask, configuration: Mapping[str, Any]) -> float:
    known = judge.knows_branch_of(configuration)
    value = judge.evaluate(configuration) if known else judge.median
    return (judge.best - value) / max(judge.best - judge.median, 1e-12)


def greedy_order(regret: Float[np.ndarray, "c s"]) -> list[int]:
    r"""The order in which every next configuration lowers most what the best so far lacks.

    $$ c_k = \arg\min_c \sum_s \min(r_{c_1 s}, \dots, r_{c_{k-1} s}, r_{c s}) $$

    - `regret`: of each configuration on each task. The first of equals goes first.
    """
    left, order = list(range(len(regret))), []
    reached = np.full(regret.shape[1], np.inf)
    while left:
        chosen = min(left, key=lambda c: (np.minimum(reached, regret[c]).sum(), c))
        reached = np.minimum(reached, regret[chosen])
        left.remove(chosen)
        order.append(chosen)
    return order


def _folder(plan: Plan, out: Path) -> Path:
    folder = out / f"prior-{plan.prior}"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _finished(records: Path, begin: Mapping[str, Any]) -> set[str]:
    """The tasks in a file, whose first line says how it was made; a new file is begun."""
    text = records.read_text() if records.exists() else ""
    whole = text[: text.rfind("\n") + 1]  # it may have been stopped in the middle of a line
    records.write_text(whole or json.dumps(begin) + "\n")
    first, *lines = [json.loads(line) for line in records.read_text().splitlines()]
    if first != begin:
        raise ValueError(
            f"{records} was made with {first['plan']}, not with {begin['plan']}; give another "
            "folder with --out."
        )
    return {line["task"] for line in lines if "task" in line}


def _append(records: Path, line: Mapping[str, Any]) -> None:
    with records.open("a") as file:
        file.write(json.dumps(line) + "\n")
