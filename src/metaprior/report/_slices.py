"""Slices through the prior as figures of the page."""

from typing import Any

import numpy as np

from metaprior.plots import Slice, draw_slice
from metaprior.report._drawing import drawn
from metaprior.report._html import Html
from metaprior.words import cut, number, value

# Longest label that fits beside a panel.
LONGEST_LABEL = 26


def drawn_slice(
    slice_: Slice, limits: tuple[float, float], *, label: str, ident: str, height: int = 190
) -> Html:
    """One slice as a figure.

    - `label`: of the value, with its unit.
    """
    lowest, highest = int(np.argmin(slice_.mean)), int(np.argmax(slice_.mean))
    ends = (
        f"{number(float(slice_.mean[i]))} at {value(slice_.values[i])}" for i in (lowest, highest)
    )
    said = f"Prior along {slice_.name}: mean of {label} between {' and '.join(ends)}."

    def draw(ax: Any) -> None:
        draw_slice(slice_, limits, ax)
        ax.set_ylabel(cut(label, LONGEST_LABEL))

    return drawn(draw, ident=ident, label=said, height=height)
