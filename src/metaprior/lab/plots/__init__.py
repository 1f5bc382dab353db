"""Figures and tables of the paper's studies. Needs the extra `plots`."""

from metaprior.lab.plots._looks import in_order as in_order
from metaprior.lab.plots._looks import key_of as key_of
from metaprior.lab.plots._looks import looks_of as looks_of
from metaprior.lab.plots._looks import title_of as title_of
from metaprior.lab.plots._prior_figure import hyper_prior_figure as hyper_prior_figure
from metaprior.lab.plots._prior_figure import prior_and_posterior as prior_and_posterior
from metaprior.lab.plots._published import CALIBRATION_ERROR as CALIBRATION_ERROR
from metaprior.lab.plots._published import LOG_LIKELIHOOD as LOG_LIKELIHOOD
from metaprior.lab.plots._published import Published as Published
from metaprior.lab.plots._study_report import report_results as report_results
from metaprior.lab.plots._study_report import study_report as study_report
from metaprior.lab.plots._tables import MISSING as MISSING
from metaprior.lab.plots._tables import Bold as Bold
from metaprior.lab.plots._tables import Cell as Cell
from metaprior.lab.plots._tables import Estimate as Estimate
from metaprior.lab.plots._tables import estimate_text as estimate_text
