"""A process that learns the next version while a study goes on: started by `learn_elsewhere`.

It is a fresh interpreter: compiled code does not survive a fork, and the user's main module may
not be safe to import a second time.
"""

import pickle
import subprocess
import sys

import optuna

from metaprior.adapters.optuna._relearning import Settings, opened, relearn, unlearned
from metaprior.adapters.optuna._storage import reason_of

# Not `-m`: the package imports this module already, and Python warns when `-m` runs it again.
_PROGRAM = f"from {__name__} import main; main()"
# A process object that is garbage-collected while its process runs emits a ResourceWarning.
_started: list[subprocess.Popen] = []


def learn_elsewhere(settings: Settings, study_name: str) -> subprocess.Popen:
    """Start learning in another process, which continues even if this one ends."""
    message = pickle.dumps((settings, study_name))
    process = subprocess.Popen(
        [sys.executable, "-c", _PROGRAM, settings.name],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
    )
    assert process.stdin is not None
    process.stdin.write(message)
    process.stdin.close()
    _started.append(process)
    return process


def main() -> None:
    """Learn from what the parent process has sent; its argument is the name of the sequence."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        _learn(*pickle.load(sys.stdin.buffer))
    # The study goes on without it, as the ledger says.
    except (Exception, KeyboardInterrupt) as error:
        print(
            f"metaprior: no new version of {sys.argv[1]!r} ({reason_of(error)}).", file=sys.stderr
        )
        sys.exit(1)


def _learn(settings: Settings, study_name: str) -> None:
    storage = opened(settings.storage)
    settings = settings._replace(storage=storage)
    ledger = settings.ledger()
    study = optuna.load_study(study_name=study_name, storage=storage)
    history = unlearned(settings, ledger, storage, study)
    if history is not None:
        relearn(settings, ledger, history)
