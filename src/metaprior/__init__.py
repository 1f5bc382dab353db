"""Learn a reliable prior over functions from past optimisation runs, and optimise the next one
in far fewer evaluations."""

from metaprior import bo as bo
from metaprior import environments as environments
from metaprior import methods as methods
from metaprior import metrics as metrics
from metaprior._learn import learn as learn
from metaprior._prior import Posterior as Posterior
from metaprior._prior import Prior as Prior
from metaprior.bo import Best as Best
from metaprior.bo import Optimizer as Optimizer
from metaprior.data import Categorical as Categorical
from metaprior.data import Integer as Integer
from metaprior.data import Real as Real
from metaprior.data import Space as Space
from metaprior.data import Tasks as Tasks
from metaprior.store import load as load

__version__ = "0.1.0"
