"""Experiments: from a specification to records."""

from metaprior.studies._offline import Predictions as Predictions
from metaprior.studies._offline import Race as Race
from metaprior.studies._offline import collect_histories as collect_histories
from metaprior.studies._offline import predict_uniform as predict_uniform
from metaprior.studies._offline import race as race
from metaprior.studies._offline import values_at_predicted_best as values_at_predicted_best
