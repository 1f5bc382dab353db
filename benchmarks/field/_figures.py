"""Regret over queries, a figure for each family, in lines that can be told apart when printed."""

from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.field._records import split_by
from metaprior.metrics import mean_and_interval

# Drawn in this order where they were run; tables have all methods.
STYLES = {
    "learn": ("black", "-", 2.0),
    "learn (fast)": ("black", "-", 2.0),
    "SingleTaskGP": ("#0072b2", "--", 1.2),
    "GPSampler": ("#0072b2", ":", 1.4),
    "past's best, SingleTaskGP": ("#d55e00", "--", 1.2),
    "RGPE": ("#009e73", "-.", 1.2),
    "HyperBO": ("#cc79a7", "-", 1.2),
    "empirical GP": ("#009e73", "-", 1.2),
    "ABLR": ("#e69f00", "-.", 1.2),
    "TPE": ("#777777", "--", 1.0),
    "random": ("#777777", ":", 1.0),
}
FLOOR = 1e-4


def draw(records: pd.DataFrame, folder: Path) -> dict[tuple[str, str], str]:
    """Draw into the folder; paths from its parent by phase and family."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = {}
    for (phase, family), own in split_by(records, ["phase", "family"]).items():
        file = folder / f"field-{phase}-{family}.svg"
        _figure(own).savefig(file, metadata={"Date": None})
        paths[str(phase), str(family)] = f"{folder.name}/{file.name}"
    return paths


def _figure(records: pd.DataFrame):
    """Panels for the regimes side by side, one scale for all."""
    from matplotlib.figure import Figure

    regimes = list(dict.fromkeys(records["regime"]))
    figure = Figure(figsize=(3.2 * len(regimes) + 1.6, 3.2), layout="constrained")
    panels = figure.subplots(1, len(regimes), sharey=True, squeeze=False)[0]
    lines = {}
    for panel, regime in zip(panels, regimes, strict=True):
        own = split_by(records, ["regime", "method"])
        for method, (colour, dashes, width) in STYLES.items():
            if (regime, method) not in own:
                continue
            mean, half = _curve(own[regime, method])
            t = np.arange(1, len(mean) + 1)
            (line,) = panel.plot(t, mean, color=colour, linestyle=dashes, linewidth=width)
            lines.setdefault(method, line)
            if method.startswith("learn") and np.isfinite(half).all():
                low, high = np.maximum(mean - half, FLOOR), mean + half
                panel.fill_between(t, low, high, color=colour, alpha=0.15, linewidth=0)
        panel.set(yscale="log", xlabel="queries", title=regime)
        panel.grid(alpha=0.3, linewidth=0.5)
    panels[0].set_ylabel("regret, share of the gap")
    figure.legend(lines.values(), lines.keys(), loc="outside right center", frameon=False)
    return figure


def _curve(runs: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """Mean over priors, and half of its interval, after each query."""
    of_prior = [
        np.stack(list(own["regret"])).mean(axis=0) for own in split_by(runs, ["seed"]).values()
    ]
    mean, half = mean_and_interval(np.stack(of_prior))
    return np.maximum(np.asarray(mean), FLOOR), np.asarray(half)
