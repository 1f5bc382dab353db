"""A process that learns the next version while a study goes on: started by `learn_elsewhere`.

It is a fresh interpreter: compiled code does not survive a fork, and the main module of whoever
runs a study need not be made for being imported again.
"""

import pickle
import subprocess
import sys

import optuna

from metaprior.adapters.optuna._relearning import Settings, opened, relearn, unlearned

# A process object that is thrown away while its process runs would complain.
_started: list[subprocess.Popen] = []


def learn_elsewhere(settings: Settings, study_name: str) -> subprocess.Popen:
    """Start learning in another process, which goes on even if this one ends."""
    message = pickle.dumps((settings, study_name))
    process = subprocess.Popen(
        [sys.executable, "-m", "metaprior.adapters.optuna._background"],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
    )
    assert process.stdin is not None
    process.stdin.write(message)
    process.stdin.close()
    _started.append(process)
    return process


def main() -> None:
    """Learn from what the parent process has sent."""
    settings, study_name = pickle.load(sys.stdin.buffer)
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    storage = opened(settings.storage)
    settings = settings._replace(storage=storage)
    ledger = settings.ledger()
    study = optuna.load_study(study_name=study_name, storage=storage)
    history = unlearned(settings, ledger, storage, study)
    if history is None:
        return
    try:
        relearn(settings, ledger, history)
    except Exception as error:  # the study goes on without it, as the ledger says
        print(f"metaprior: no new version of {settings.name!r} ({error}).", file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    main()
