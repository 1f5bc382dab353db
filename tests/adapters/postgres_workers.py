"""A worker on a study in PostgreSQL: `python postgres_workers.py URL STUDY PRIOR TRIALS`.

It says `ready` and waits for a line, so that workers can be let go together. The line is how many
they are, and `doomed` or `-`. In its first trial a worker says `asked` when it has its parameters,
and waits until all others have theirs; one that is doomed waits to be killed.
"""

import sys
import time

import optuna
from optuna.storages import RDBStorage

from metaprior.adapters.optuna import MetaPriorSampler

# Seconds to wait for others before giving up.
PATIENCE = 300.0


def hill(x, z):
    """A hill like those that the prior has been learned from, with the top at (0.35, 6.5)."""
    return 2.0 - ((x - 0.35) / 0.8) ** 2 - ((z - 6.5) / 4.0) ** 2


def objective(trial):
    x, z = trial.suggest_float("x", -1.0, 1.0), trial.suggest_float("z", 0.0, 10.0)
    return hill(x, z)


def meet(study, number):
    """Wait until so many trials of the study have all of their parameters."""
    end = time.monotonic() + PATIENCE
    while sum(len(trial.params) == 2 for trial in study.get_trials(deepcopy=False)) < number:
        if time.monotonic() > end:
            raise TimeoutError("the other workers did not come")
        time.sleep(0.05)


def main():
    url, study_name, prior, trials = sys.argv[1:5]
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    # A heartbeat for others to see; this worker itself ends no trial of anybody.
    storage = RDBStorage(url, heartbeat_interval=1, grace_period=600)
    study = optuna.load_study(
        study_name=study_name, storage=storage, sampler=MetaPriorSampler(prior, seed=0)
    )
    print("ready", flush=True)
    workers, fate = sys.stdin.readline().split()
    first = []

    def tried(trial):
        value = objective(trial)
        if not first:
            first.append(trial.number)
            print("asked", flush=True)
            meet(study, int(workers))
            if fate == "doomed":
                time.sleep(PATIENCE)
        return value

    study.optimize(tried, n_trials=int(trials))
    print("done", *first, flush=True)


if __name__ == "__main__":
    main()
