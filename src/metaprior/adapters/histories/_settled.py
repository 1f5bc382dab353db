"""Parameters that are settled per task: the same in all trials of a study, another one elsewhere.

Such a parameter, a data set say, says which task it is. It is nothing to choose point by point.
"""

from collections.abc import Iterable

from metaprior.adapters.histories._trials import StudyTrials
from metaprior.words import listed


def without_settled(
    studies: list[StudyTrials], among: Iterable[str] | None = None
) -> tuple[list[StudyTrials], list[str]]:
    """The studies without parameters that change between studies only, and a sentence on these.

    - `among`: the parameters to look at; all by default.
    """
    used = [study for study in studies if not study.reason]
    if len(used) < 2:
        return studies, []
    names = dict.fromkeys(name for study in used for t in study.trials for name in t.params)
    settled = [
        name for name in names if (among is None or name in among) and _is_settled(name, used)
    ]
    if not settled:
        return studies, []
    note = (
        f"The same in all trials of each study, and left out of the space: "
        f"{listed([repr(name) for name in settled], 5)}; as a feature it would say something of "
        "the task."
    )
    return [_without(study, settled) for study in studies], [note]


def _is_settled(name: str, studies: list[StudyTrials]) -> bool:
    """Whether a parameter never changes within a study, and does from one to another."""
    seen = [{trial.params.get(name) for trial in study.trials} for study in studies]
    return all(len(values) == 1 for values in seen) and len(set().union(*seen)) > 1


def _without(study: StudyTrials, names: list[str]) -> StudyTrials:
    trials = [
        trial._replace(
            params={name: value for name, value in trial.params.items() if name not in names},
            declared={name: each for name, each in trial.declared.items() if name not in names},
        )
        for trial in study.trials
    ]
    return study._replace(trials=trials)
