"""Figures and tables of the paper's studies. Needs the extra `plots`."""

from metaprior.lab.plots._demo import demo_figure as demo_figure
from metaprior.lab.plots._prior_figure import hyper_prior_figure as hyper_prior_figure
from metaprior.lab.plots._prior_figure import prior_and_posterior as prior_and_posterior
from metaprior.lab.plots._study_report import study_report as study_report
