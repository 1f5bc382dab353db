"""Learning a prior: the machinery that every method shares."""

from metaprior.meta._data import HeldOut as HeldOut
from metaprior.meta._data import MetaData as MetaData
from metaprior.meta._data import TaskBatch as TaskBatch
from metaprior.meta._data import meta_data as meta_data
from metaprior.meta._hyper_posterior import HyperPosterior as HyperPosterior
from metaprior.meta._hyper_prior import vanilla_hyper_prior as vanilla_hyper_prior
from metaprior.meta._measured_tasks import MeasuredTasks as MeasuredTasks
from metaprior.meta._measured_tasks import measure_tasks as measure_tasks
from metaprior.meta._measurement import Domain as Domain
from metaprior.meta._measurement import MeasurementSizes as MeasurementSizes
from metaprior.meta._measurement import choose_measurements as choose_measurements
from metaprior.meta._measurement import choose_tasks as choose_tasks
from metaprior.meta._measurement import measurement_sizes as measurement_sizes
from metaprior.meta._objective import FPacohBatch as FPacohBatch
from metaprior.meta._objective import FPacohObjective as FPacohObjective
from metaprior.meta._train import AbstractObjective as AbstractObjective
from metaprior.meta._train import Progress as Progress
from metaprior.meta._train import Schedule as Schedule
from metaprior.meta._train import Trained as Trained
from metaprior.meta._train import Trainings as Trainings
from metaprior.meta._train import train as train
from metaprior.meta._train import train_many as train_many
