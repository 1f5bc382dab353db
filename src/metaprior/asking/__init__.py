"""Asking a belief for the next query: what it is worth, and the search for the best."""

from metaprior.asking._feasible import FeasibleImprovement as FeasibleImprovement
from metaprior.asking._feasible import feasible_improvement as feasible_improvement
from metaprior.asking._moves import Moves as Moves
from metaprior.asking._moves import free_moves as free_moves
from metaprior.asking._propose import RunSoFar as RunSoFar
from metaprior.asking._propose import propose as propose
from metaprior.asking._propose import propose_among as propose_among
from metaprior.asking._propose import unused as unused
from metaprior.asking._search import Effort as Effort
from metaprior.asking._search import maximum as maximum
from metaprior.asking._worth import AbstractWorth as AbstractWorth
from metaprior.asking._worth import Bound as Bound
from metaprior.asking._worth import CheckedBound as CheckedBound
from metaprior.asking._worth import DrawnFunction as DrawnFunction
from metaprior.asking._worth import LogImprovement as LogImprovement
from metaprior.asking._worth import MeanScore as MeanScore
from metaprior.asking._worth import ScoredAnchors as ScoredAnchors
