"""Numbers, names and lists as people read them, in messages and on pages."""

from metaprior.words._numbers import MISSING as MISSING
from metaprior.words._numbers import fixed as fixed
from metaprior.words._numbers import number as number
from metaprior.words._numbers import power_of_ten as power_of_ten
from metaprior.words._numbers import value as value
from metaprior.words._summary import Summary as Summary
from metaprior.words._texts import counted as counted
from metaprior.words._texts import cut as cut
from metaprior.words._texts import listed as listed
from metaprior.words._texts import shortened as shortened
from metaprior.words._texts import visible as visible
