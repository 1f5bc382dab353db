"""What a learned prior says about one run, in the user's units."""

from metaprior.belief._prior import Posterior as Posterior
from metaprior.belief._prior import Prior as Prior
