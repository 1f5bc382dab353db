"""What a pruned trial is at most, by the complete trials of its study."""

import math

import pytest
from optuna import create_trial
from optuna.distributions import FloatDistribution
from optuna.study import StudyDirection
from optuna.trial import TrialState

from metaprior.adapters.optuna._pruned import EarlyStops

COMPLETE, PRUNED = TrialState.COMPLETE, TrialState.PRUNED
# Reports at steps 0 and 10, and the result.
DONE = [((1.0, 5.0), 50.0), ((2.0, 7.0), 20.0), ((3.0, 6.0), 90.0), ((4.0, 9.0), 40.0)]


def trial(state, reports, value=None, sign=1.0):
    return create_trial(
        params={"x": 0.5},
        distributions={"x": FloatDistribution(0.0, 1.0)},
        state=state,
        value=None if value is None else sign * value,
        intermediate_values={step: sign * seen for step, seen in reports.items()},
    )


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize(
    "reports, limit",
    [
        ({0: 3.5}, 40.0),  # one was ahead
        ({0: 2.5}, 65.0),  # the median of two
        ({0: 9.0, 10: 6.5}, 30.0),  # at the last step, the second and the last are ahead
        ({0: 9.0}, 45.0),  # none is: the median of all
        ({7: 0.0}, 45.0),  # no other trial reported there
        ({}, 45.0),
        ({0: math.nan}, 45.0),
    ],
)
def test_pruned_trials_are_no_better_than_those_ahead(reports, limit, sign):
    """The same for a study that is minimised, where everything is negated."""
    complete = [trial(COMPLETE, {0: a, 10: b}, value, sign) for (a, b), value in DONE]
    stopped = trial(PRUNED, reports, sign=sign)
    direction = StudyDirection.MAXIMIZE if sign > 0 else StudyDirection.MINIMIZE
    stops = EarlyStops([*complete, stopped, trial(TrialState.FAIL, {0: 9.0})], direction)
    assert stops.pruned == [stopped]
    assert stops.limit(stopped) == sign * limit


def test_pruned_trials_alone_have_no_limit():
    """An infinite value is no result, either."""
    endless = create_trial(params={}, distributions={}, value=math.inf)
    stopped = trial(PRUNED, {0: 1.0})
    assert EarlyStops([stopped, endless], StudyDirection.MAXIMIZE).limit(stopped) is None
