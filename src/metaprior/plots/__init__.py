"""Figures: arrays and records in, a matplotlib figure out. Needs the extra `plots`."""

from metaprior.plots._demo import demo_figure as demo_figure
from metaprior.plots._panels import Belief as Belief
from metaprior.plots._panels import CoverageCurve as CoverageCurve
from metaprior.plots._panels import Landscape as Landscape
from metaprior.plots._panels import PastRuns as PastRuns
from metaprior.plots._panels import RegretCurves as RegretCurves
from metaprior.plots._panels import draw_belief as draw_belief
from metaprior.plots._panels import draw_coverage as draw_coverage
from metaprior.plots._panels import draw_landscape as draw_landscape
from metaprior.plots._panels import draw_past_runs as draw_past_runs
from metaprior.plots._panels import draw_regret as draw_regret
from metaprior.plots._prior_figure import hyper_prior_figure as hyper_prior_figure
from metaprior.plots._prior_figure import prior_and_posterior as prior_and_posterior
from metaprior.plots._study_report import study_report as study_report
