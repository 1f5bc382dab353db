"""What the tests of the lifelong sampler need: an objective, a stand-in for learning that takes as
long as it should, and the same for workers in other processes.

A worker: `python lifelong_workers.py STORAGE FOLDER STUDY TRIALS EXPIRES`, with the stand-in; it
says when it has begun to learn, and at the end which version it used.
"""

import sys
import time
from pathlib import Path

import optuna

import metaprior as mp
from metaprior.adapters.optuna import MetaPriorSampler
from metaprior.lifelong import _learning

# A worker is started as a script, which does not find the other tests by itself.
sys.path.append(str(Path(__file__).parents[2]))

from tests.quick_learn import findings_with, quick_learn  # noqa: E402

NAME = "ovens"
SPACE = mp.Space(x=mp.Real(-1.0, 1.0), z=mp.Real(0.0, 10.0))


def objective(trial):
    x, z = trial.suggest_float("x", -1.0, 1.0), trial.suggest_float("z", 0.0, 10.0)
    return 2.0 - (x - 0.3) ** 2 - ((z - 6.0) / 5.0) ** 2


def stand_in(scores, *, during=lambda: None):
    """A function to put in the place of `learn`: `scores` are the held-out ones of its priors."""
    scores = iter(scores)

    def learn(tasks, **options):
        during()
        return quick_learn(tasks, findings_with(tasks, next(scores)))

    return learn


def wait():
    print("learning", flush=True)
    time.sleep(float(sys.argv[6]) if len(sys.argv) > 6 else 0.0)


def main():
    storage, folder, study_name, trials, expires = sys.argv[1:6]
    _learning.learn = stand_in([1.0] * 10, during=wait)
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    sampler = MetaPriorSampler.lifelong(
        storage, name=NAME, folder=folder, space=SPACE, seed=0, expires=float(expires)
    )
    study = optuna.create_study(
        storage=storage,
        study_name=study_name,
        sampler=sampler,
        load_if_exists=True,
        direction="maximize",
    )
    study.optimize(objective, n_trials=int(trials))
    print(f"version {sampler.version}", flush=True)


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    main()
