"""How good the predictions and the optimisation were: arrays in, numbers out."""

from metaprior.metrics._calibration import calibration_error as calibration_error
from metaprior.metrics._calibration import coverage as coverage
from metaprior.metrics._predictive import gaussian_cdf as gaussian_cdf
from metaprior.metrics._predictive import gaussian_log_density as gaussian_log_density
from metaprior.metrics._predictive import log_likelihood as log_likelihood
from metaprior.metrics._regret import MeanInterval as MeanInterval
from metaprior.metrics._regret import cumulative_regret as cumulative_regret
from metaprior.metrics._regret import inference_regret as inference_regret
from metaprior.metrics._regret import mean_and_interval as mean_and_interval
from metaprior.metrics._regret import simple_regret as simple_regret
