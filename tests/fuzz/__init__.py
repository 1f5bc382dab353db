"""Damaged and hostile input, made by the thousand: `python -m tests.fuzz --cases 10000`."""
