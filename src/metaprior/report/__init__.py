"""The report on a learned prior: one HTML page. Drawing it needs the extra `plots`."""

from metaprior.report._write import write_report as write_report
