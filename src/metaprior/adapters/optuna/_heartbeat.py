"""Heartbeats, without a wall clock: one that is set back or ahead must not change who is alive.

A heartbeat says which boot of which machine it comes from, and the time since then. On the same
machine its age is known. On another one it is watched: a heart that beats changes what it says. The
first look at what it says is written down beside it, so that processes of one machine that live
for a moment only watch together.
"""

import time
import uuid
from contextlib import suppress
from functools import cache
from pathlib import Path
from socket import gethostname
from typing import Any

from optuna.exceptions import StorageInternalError
from optuna.storages import BaseStorage
from optuna.trial import FrozenTrial

HEARTBEAT = "heartbeat"
_LOOK = "heartbeat seen:"
_BOOT = Path("/proc/sys/kernel/random/boot_id")


def heartbeat() -> list[Any]:
    """What a heart says now: where, when there, and for people what their clock says."""
    return [_machine(), time.monotonic(), time.strftime("%Y-%m-%d %H:%M:%S %z")]


def silence(trial: FrozenTrial, storage: BaseStorage) -> float:
    """Seconds for which the heart of a running trial has been silent, as far as is known here."""
    now, here = time.monotonic(), _machine()
    said = trial.user_attrs.get(HEARTBEAT)
    match said:
        case [place, float(beat), _] if place == here and beat <= now:
            return now - beat
    match trial.user_attrs.get(_LOOK + here):
        case [before, float(seen)] if before == said and seen <= now:
            return now - seen
    with suppress(StorageInternalError):  # the storage may be unreachable for a while
        storage.set_trial_user_attr(trial._trial_id, _LOOK + here, [said, now])
    return 0.0


@cache
def _machine() -> str:
    """This machine since it was started: all its processes share one monotonic clock."""
    try:
        return _BOOT.read_text(encoding="ascii").strip()
    except OSError:
        return f"{gethostname()[:60]}-{uuid.getnode():x}"
