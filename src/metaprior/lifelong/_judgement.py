r"""Whether a new version of a prior replaces the one in use.

Both are judged on runs that they had not seen. With $d_i$ the held-out log-likelihood of run $i$
under the new version minus that under the old one, over the $k$ runs that were held out from both,
the new one is kept if

$$ \bar d \ge -2 s / \sqrt k, $$

$s$ being the standard deviation of the $d_i$: if it is not clearly worse. The new version has
learned from more runs, so it wins ties; and the version in use was selected by a score that was
partly luck, so a margin of one standard error would keep it for too long. With a single run in
common the spread is unknown, and the new one is kept if $d_1 \ge 0$.
"""

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

# How many standard errors a version may be worse and still count as not worse.
TOLERATED = 2.0


class Judgement(NamedTuple):
    """Whether the new version is kept, and why, in a sentence."""

    kept: bool
    reason: str


def judge(new: Mapping[str, float], old: Mapping[str, float] | None) -> Judgement:
    """Compare the held-out log-likelihoods of two versions, each by name of run.

    Both must be in one unit: a log density depends on the scale of the values.

    - `old`: `None` if there is no version yet.
    """
    if not new:
        return Judgement(False, "It was not judged on held-out runs, so its quality is unknown.")
    if old is None:
        return Judgement(True, "It is the first version.")
    common = [name for name in new if name in old]
    if not common:
        return Judgement(
            True,
            "No run was held out from both versions; it is kept, having learned from more runs.",
        )
    differences = np.array([new[name] - old[name] for name in common])
    mean = float(np.mean(differences))
    if len(common) == 1:
        error = 0.0
        spread = "on one run"
    else:
        error = float(np.std(differences, ddof=1)) / math.sqrt(len(common))
        spread = f"+- {error:.3f} on {len(common)} runs"
    kept = mean >= -TOLERATED * error
    verdict = "not worse" if kept else "worse"
    return Judgement(
        kept,
        f"Its held-out log-likelihood is {verdict} than that of the version before: {mean:+.3f} "
        f"{spread}.",
    )


def in_units(
    log_likelihoods: Mapping[str, float], spread: float, new_spread: float
) -> dict[str, float]:
    """Log densities of values measured in units of `spread`, as those of `new_spread`.

    The density of $y / s$ is $s$ times that of $y$.
    """
    shift = math.log(new_spread) - math.log(spread)
    return {name: value + shift for name, value in log_likelihoods.items()}
