# %% [markdown]
# # Four workers on one PostgreSQL storage
#
# Past studies are in a PostgreSQL database. A prior is learned from them, and four processes, which
# communicate only through the database, work on the next study together.
#
# `python examples/four_workers.py postgresql+psycopg://user:password@host/database` uses a database
# of yours, in which it creates a few studies whose names start with `four-workers`. Without an
# address, a temporary PostgreSQL server is started. `METAPRIOR_SMALL=1` is quick.

# %%
import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import optuna
from optuna.trial import TrialState

import metaprior as mp
from metaprior.adapters.optuna import MetaPriorSampler, load_tasks

parser = argparse.ArgumentParser(description="Four workers on one PostgreSQL storage.")
parser.add_argument("storage", nargs="?", help="the URL of a PostgreSQL database")
parser.add_argument("--worker", help="be the worker of this name")
parser.add_argument("--study", help="for a worker: the study to work on")
parser.add_argument("--prior", help="for a worker: the folder of the prior")
arguments = parser.parse_args()

small = bool(os.environ.get("METAPRIOR_SMALL"))
num_workers, num_trials = 4, 3 if small else 5
num_past, past_trials = (4, 6) if small else (10, 15)
seconds = 0.2 if small else 1.0
optuna.logging.set_verbosity(optuna.logging.WARNING)

# %% Without an address: run this script again with a temporary server
if arguments.storage is None:
    server = Path(__file__).parents[1] / "tests" / "adapters" / "postgres_server.py"
    sys.exit(subprocess.run([sys.executable, server, sys.executable, __file__]).returncode)


# %% What is optimised: an oven, a little different every day
def loss(temperature: float, minutes: int, day: float) -> float:
    """How far a loaf is from a perfect one."""
    heat = (temperature - 215 - 12 * day) / 30
    time_needed = 34 - 6 * heat + 3 * day
    return heat**2 + ((minutes - time_needed) / 9) ** 2 + 0.3 * np.sin(3 * heat) ** 2


def objective(trial: optuna.Trial, day: float) -> float:
    temperature = trial.suggest_float("temperature", 160, 280)
    minutes = trial.suggest_int("minutes", 10, 80)
    return loss(temperature, minutes, day)


today = 0.8

# %% A worker: loads the prior, joins the study, and bakes
# On a cluster this is all that each machine runs.
if arguments.worker is not None:
    study = optuna.load_study(
        study_name=arguments.study,
        storage=arguments.storage,
        sampler=MetaPriorSampler(arguments.prior, seed=0),
    )

    def bake(trial: optuna.Trial) -> float:
        trial.set_user_attr("worker", arguments.worker)
        value = objective(trial, today)
        time.sleep(seconds)  # stands for the time that baking takes
        return value

    study.optimize(bake, n_trials=num_trials)
    sys.exit()

# %% Past days, in the database
name = f"four-workers-{time.time_ns():x}"  # unique, so that earlier runs do not interfere
rng = np.random.default_rng(0)
for i, day in enumerate(rng.normal(0.0, 1.0, num_past)):
    past = optuna.create_study(
        study_name=f"{name}-past-{i}",
        storage=arguments.storage,
        sampler=optuna.samplers.RandomSampler(seed=i),
    )
    past.optimize(lambda trial, day=day: objective(trial, day), n_trials=past_trials)
print(f"{num_past} past days of {past_trials} trials each are in the database.")

# %% A prior from them
tasks = load_tasks(arguments.storage, match=f"{name}-past-*")
if small:
    prior = mp.learn(tasks, method=mp.methods.FPacohMap(num_steps=100), seed=0)
else:
    prior = mp.learn(tasks, budget="fast", seed=0)
    print(prior.findings.verdict)

# %% Four workers begin at once
study = optuna.create_study(study_name=f"{name}-today", storage=arguments.storage)
with tempfile.TemporaryDirectory() as folder:
    command = [sys.executable, __file__, arguments.storage, "--study", study.study_name]
    command += ["--prior", str(prior.save(Path(folder) / "prior"))]
    workers = [
        subprocess.Popen([*command, "--worker", str(worker)])
        for worker in range(1, num_workers + 1)
    ]
    codes = [worker.wait() for worker in workers]
if any(codes):
    sys.exit(f"Workers ended with the codes {codes}; what they printed says why.")

# %% Which worker tried what
trials = study.get_trials(states=(TrialState.COMPLETE,))
print("\nworker  trial  temperature  minutes   loss")
for trial in sorted(trials, key=lambda trial: (trial.user_attrs["worker"], trial.number)):
    print(
        f"{trial.user_attrs['worker']:>6}  {trial.number:>5}  {trial.params['temperature']:>11.1f}"
        f"  {trial.params['minutes']:>7}  {trial.value:>5.3f}"
    )
points = {tuple(trial.params.values()) for trial in trials}
print(f"\n{len(trials)} trials by {num_workers} workers at {len(points)} different points.")

grid = ((t, m) for t in np.linspace(160, 280, 481) for m in range(10, 81))
truth = min(loss(t, m, today) for t, m in grid)
print(f"Best loss found {study.best_value:.4f}, best possible {truth:.4f}.")
