"""What a learned prior says about one run: in the user's units, and as a belief in NumPy."""

from metaprior.belief._ascent import AbstractSmoothFunction as AbstractSmoothFunction
from metaprior.belief._ascent import climb as climb
from metaprior.belief._averaged import AveragedBelief as AveragedBelief
from metaprior.belief._belief import AbstractBelief as AbstractBelief
from metaprior.belief._belief import ConditionedBelief as ConditionedBelief
from metaprior.belief._fitted import FittedBelief as FittedBelief
from metaprior.belief._members import AbstractPath as AbstractPath
from metaprior.belief._mixture import BeliefMoments as BeliefMoments
from metaprior.belief._mixture import BeliefSlopes as BeliefSlopes
from metaprior.belief._prior import Posterior as Posterior
from metaprior.belief._prior import Prior as Prior
from metaprior.belief._read import belief_of as belief_of
from metaprior.belief._read import has_belief as has_belief
from metaprior.belief._window import SeenThrough as SeenThrough
from metaprior.belief._window import UnitView as UnitView
