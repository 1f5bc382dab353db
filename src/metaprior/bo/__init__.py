"""Deciding: what a query is worth, the search for the best, and the ask/tell optimiser."""

from metaprior.bo._acquisition import AbstractAcquisition as AbstractAcquisition
from metaprior.bo._acquisition import LogExpectedImprovement as LogExpectedImprovement
from metaprior.bo._acquisition import RestlessConfidenceBound as RestlessConfidenceBound
from metaprior.bo._acquisition import ScoredAnchors as ScoredAnchors
from metaprior.bo._acquisition import ThompsonSampling as ThompsonSampling
from metaprior.bo._acquisition import UpperConfidenceBound as UpperConfidenceBound
from metaprior.bo._constrained import ConstrainedImprovement as ConstrainedImprovement
from metaprior.bo._constrained import constrained_improvement as constrained_improvement
from metaprior.bo._moves import Moves as Moves
from metaprior.bo._moves import free_moves as free_moves
from metaprior.bo._optimizer import Best as Best
from metaprior.bo._optimizer import Optimizer as Optimizer
from metaprior.bo._outlook import Expectation as Expectation
from metaprior.bo._outlook import StoppingHint as StoppingHint
from metaprior.bo._ranges import Numbers as Numbers
from metaprior.bo._ranges import Options as Options
from metaprior.bo._ranges import Range as Range
from metaprior.bo._ranges import covers as covers
from metaprior.bo._ranges import new_choices as new_choices
from metaprior.bo._ranges import surplus as surplus
from metaprior.bo._ranges import whole_range as whole_range
from metaprior.bo._search import Search as Search
from metaprior.bo._search import maximum as maximum
from metaprior.bo._window import Window as Window
