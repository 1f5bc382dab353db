"""Learning without tuning: candidates race on held-out runs, the winner learns from all of them."""

from metaprior.learning._budget import Budget as Budget
from metaprior.learning._budget import budget_named as budget_named
from metaprior.learning._cache import keep_programs as keep_programs
from metaprior.learning._exam import spread_of as spread_of
from metaprior.learning._learn import learn as learn
from metaprior.learning._measure import findings_of as findings_of
from metaprior.learning._outputs import learn_outputs as learn_outputs
from metaprior.learning._progress import LearnProgress as LearnProgress
from metaprior.learning._progress import OnLearnProgress as OnLearnProgress
from metaprior.learning._progress import Watch as Watch
from metaprior.learning._progress import listening as listening
from metaprior.learning._select import Selection as Selection
from metaprior.learning._select import select as select
from metaprior.learning._unseen import held_out_log_likelihood as held_out_log_likelihood
