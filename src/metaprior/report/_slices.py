"""Slices through the prior as figures of the page."""

from functools import partial

import numpy as np

from metaprior.plots import Slice, draw_slice
from metaprior.report._drawing import drawn
from metaprior.report._html import Html
from metaprior.words import number, value


def drawn_slice(
    slice_: Slice, limits: tuple[float, float], *, ident: str, height: int = 190
) -> Html:
    """One slice as a figure."""
    lowest, highest = int(np.argmin(slice_.mean)), int(np.argmax(slice_.mean))
    ends = (
        f"{number(float(slice_.mean[i]))} at {value(slice_.values[i])}" for i in (lowest, highest)
    )
    label = f"Prior along {slice_.name}: mean between {' and '.join(ends)}."
    return drawn(partial(draw_slice, slice_, limits), ident=ident, label=label, height=height)
