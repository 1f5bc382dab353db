"""Processes killed at random moments, by the thousand: `python -m tests.kill --kills 1000`."""
