"""Where a learned prior is saved: checked before learning, and never nowhere after it."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

from metaprior.belief import Prior
from metaprior.store import checksum_of, require_place, require_writeable, save_prior

_MOST_BESIDE = 20


def check_place(out: Path, *, force: bool) -> str:
    """Make sure that a prior can be saved in `out`; replacing one needs `force`.

    What comes back is the checksum of the prior that is there now.
    """
    if require_place(out) and not force:
        raise ValueError(
            f"There is a prior in {out} already; name another folder with --out, or replace it "
            "with --force."
        )
    require_writeable(out)
    return checksum_of(out)


def save_somewhere(prior: Prior, out: Path, *, before: str) -> tuple[Path, str | None]:
    """Save the prior in `out`, or in a second place if that fails: where, and why not in `out`.

    - `before`: the checksum of the prior that was there before learning, which may be replaced.

    Learning takes long: a disk that has filled up, a folder that has gone, or another process that
    has saved a prior there meanwhile must not be the end of what was learned.
    """
    try:
        return save_prior(prior, out, replace=before), None
    except (OSError, ValueError) as error:
        problem = error
    for place in _second_places(out):
        try:
            return save_prior(prior, place, replace=False), str(problem)
        except (OSError, ValueError):
            continue
    raise problem


def _second_places(out: Path) -> Iterator[Path]:
    """Beside `out`; and on what may be another disk."""
    out = out.absolute()
    name = out.name or "prior"
    for number in range(2, _MOST_BESIDE):
        beside = out.with_name(f"{name}-{number}")
        if not beside.exists() and not beside.is_symlink():
            yield beside
    yield Path(tempfile.mkdtemp(prefix=f"metaprior-{name}-"))
