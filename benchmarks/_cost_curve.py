"""What a training step costs, by the number of past runs and by their length, drawn."""

from pathlib import Path
from typing import NamedTuple


class CostCurve(NamedTuple):
    """Milliseconds of a step along one size, everything else fixed."""

    along: str
    fixed: str
    sizes: list[int]
    milliseconds: list[float]


def draw(curves: list[CostCurve], path: Path) -> None:
    """One panel per curve, both axes logarithmic and the vertical one shared."""
    import matplotlib.pyplot as plt

    figure, panels = plt.subplots(
        1, len(curves), figsize=(3.4 * len(curves), 2.6), sharey=True, squeeze=False
    )
    for panel, curve in zip(panels[0], curves, strict=True):
        panel.loglog(curve.sizes, curve.milliseconds, "o-", color="#0072B2")
        for size, cost in zip(curve.sizes, curve.milliseconds, strict=True):
            panel.annotate(f"{cost:.2g}", (size, cost), (0, 6), textcoords="offset points")
        panel.set_xlabel(f"{curve.along} ({curve.fixed})")
        panel.grid(alpha=0.3)
    panels[0][0].set_ylabel("milliseconds per step")
    panels[0][0].set_ylim(
        0.3 * min(min(curve.milliseconds) for curve in curves),
        5.0 * max(max(curve.milliseconds) for curve in curves),
    )
    figure.tight_layout()
    figure.savefig(path, dpi=150)
    plt.close(figure)
