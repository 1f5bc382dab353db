"""Past trials of any host as tasks: their space, what is left out of them, and why."""

from metaprior.adapters.histories._declared import Declared as Declared
from metaprior.adapters.histories._declared import DeclaredChoice as DeclaredChoice
from metaprior.adapters.histories._declared import DeclaredNumber as DeclaredNumber
from metaprior.adapters.histories._declared import Merged as Merged
from metaprior.adapters.histories._declared import as_choice as as_choice
from metaprior.adapters.histories._declared import is_choice as is_choice
from metaprior.adapters.histories._declared import merged_dimension as merged_dimension
from metaprior.adapters.histories._history import History as History
from metaprior.adapters.histories._history import NothingUsable as NothingUsable
from metaprior.adapters.histories._history import check_wanted as check_wanted
from metaprior.adapters.histories._history import chosen_names as chosen_names
from metaprior.adapters.histories._history import history_of as history_of
from metaprior.adapters.histories._presence import switches as switches
from metaprior.adapters.histories._presence import with_switches as with_switches
from metaprior.adapters.histories._presence import without_switches as without_switches
from metaprior.adapters.histories._trials import FEWEST_TRIALS as FEWEST_TRIALS
from metaprior.adapters.histories._trials import TOO_FEW_TRIALS as TOO_FEW_TRIALS
from metaprior.adapters.histories._trials import StudyTrials as StudyTrials
from metaprior.adapters.histories._trials import UsableTrial as UsableTrial
from metaprior.adapters.histories._undeclared import declared_by_values as declared_by_values
