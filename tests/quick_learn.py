"""The one stand-in for `learn`, for tests of what happens before and after learning."""

from dataclasses import replace
from typing import Any

import metaprior as mp


def quick_learn(tasks: mp.Tasks, findings: Any) -> mp.Prior:
    """A prior for these tasks that takes no training, with findings that the test makes up."""
    return replace(mp.learn(tasks, method=mp.methods.FixedGP()), findings=findings)


def findings_with(tasks: mp.Tasks, score: float) -> Any:
    """Findings in which every run has this held-out log-likelihood."""
    return {"tasks": [{"task": i, "log_likelihood": score} for i in range(len(tasks))]}
