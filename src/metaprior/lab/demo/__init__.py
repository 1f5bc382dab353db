"""The demo: a prior learned on two families, beside a fixed GP. Needs the extra `plots`."""

from metaprior.lab.demo._computation import FPACOH as FPACOH
from metaprior.lab.demo._computation import NUM_STAGES as NUM_STAGES
from metaprior.lab.demo._computation import QUICK as QUICK
from metaprior.lab.demo._computation import DemoResults as DemoResults
from metaprior.lab.demo._computation import DemoSizes as DemoSizes
from metaprior.lab.demo._computation import compute_demo as compute_demo
from metaprior.lab.demo._figure import demo_figure as demo_figure
from metaprior.lab.demo._numbers import demo_numbers as demo_numbers
