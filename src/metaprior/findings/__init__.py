"""Findings: what was measured on held-out runs, one typed record for all readers."""

from metaprior.findings._findings import BASELINE as BASELINE
from metaprior.findings._findings import INTERRUPTED as INTERRUPTED
from metaprior.findings._findings import NOTHING_MEASURED as NOTHING_MEASURED
from metaprior.findings._findings import Chosen as Chosen
from metaprior.findings._findings import Example as Example
from metaprior.findings._findings import Findings as Findings
from metaprior.findings._findings import HeldOutScores as HeldOutScores
from metaprior.findings._findings import PastTask as PastTask
from metaprior.findings._findings import PredictionScores as PredictionScores
from metaprior.findings._findings import Replay as Replay
from metaprior.findings._findings import Series as Series
from metaprior.findings._findings import StoppingCalibration as StoppingCalibration
from metaprior.findings._from_json import read_record as read_record
