"""Ray Tune in: the folders that its experiments leave behind as tasks. Ray itself is not needed."""

from metaprior.adapters import StudyUse as StudyUse
from metaprior.adapters.histories import History as History
from metaprior.adapters.histories import LoggedOptions as LoggedOptions
from metaprior.adapters.ray._history import load_tasks as load_tasks
from metaprior.adapters.ray._history import read_history as read_history
