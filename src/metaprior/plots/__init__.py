"""Figures: arrays and records in, a matplotlib figure out. Needs the extra `plots`."""

from metaprior.plots._panels import FAINT as FAINT
from metaprior.plots._panels import HALF_WIDTH_95 as HALF_WIDTH_95
from metaprior.plots._panels import INK as INK
from metaprior.plots._panels import PALETTE as PALETTE
from metaprior.plots._panels import SMALLEST_REGRET as SMALLEST_REGRET
from metaprior.plots._panels import Belief as Belief
from metaprior.plots._panels import Colours as Colours
from metaprior.plots._panels import CoverageCurve as CoverageCurve
from metaprior.plots._panels import Landscape as Landscape
from metaprior.plots._panels import PastQueries as PastQueries
from metaprior.plots._panels import RegretCurves as RegretCurves
from metaprior.plots._panels import draw_band as draw_band
from metaprior.plots._panels import draw_belief as draw_belief
from metaprior.plots._panels import draw_coverage as draw_coverage
from metaprior.plots._panels import draw_landscape as draw_landscape
from metaprior.plots._panels import draw_past_runs as draw_past_runs
from metaprior.plots._panels import draw_regret as draw_regret
