"""What is known about a learned prior, as one page to read. Drawing needs the extra `plots`."""

from metaprior.report._findings import Findings as Findings
from metaprior.report._findings import read_findings as read_findings
from metaprior.report._write import write_report as write_report
