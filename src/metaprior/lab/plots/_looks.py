"""How things are called and drawn: one label, colour, line and marker for each method, one title
for each environment, one style for all figures of a study.

Methods keep their look in every figure. The colours are colour-blind safe; lines and markers differ
too, so that the figures can be printed in greyscale.
"""

import re
from collections.abc import Iterable
from typing import Any, NamedTuple

from metaprior.plots import INK


class Look(NamedTuple):
    """The label of a method and how its line is drawn."""

    label: str
    colour: str
    dashes: Any = "-"
    marker: str = "o"
    width: float = 1.1


_DASHED, _DOTTED = (0, (4, 1.4)), (0, (1, 1.1))
_DASH_DOT, _DASH_DOT_DOT = (0, (5, 1.2, 1, 1.2)), (0, (5, 1.2, 1, 1.2, 1, 1.2))
_LONG_DASHES = (0, (8, 2))

# Okabe and Ito's colours, and three darker ones that lie between them in lightness.
METHODS = {
    "learn": Look("learn", "#B00020", "-", "H", 2.0),
    "fpacohmap": Look("F-PACOH-MAP", "#0072B2", "-", "o", 2.0),
    "fpacohvi": Look("F-PACOH-VI", "#56B4E9", "-", "s", 1.6),
    "fpacohbnn": Look("F-PACOH-BNN", "#003B5C", _DASHED, "h", 1.6),
    "pacohmap": Look("PACOH-MAP", "#D55E00", _DASHED, "^"),
    "ablr": Look("ABLR", "#009E73", _DASH_DOT, "v"),
    "neuralprocess": Look("NP", "#CC79A7", _DASH_DOT_DOT, "D"),
    "rankweightedgp": Look("RWGP", "#E69F00", _LONG_DASHES, "P"),
    "learnedgp": Look("Learned GP", "#882255", _DASHED, "X"),
    "fittedgp": Look("Fitted GP", "#6B6B2E", _DASH_DOT, "<"),
    "fixedgp": Look("Fixed GP", "#000000", "-", "d"),
    "randomsearch": Look("Random search", "#8C8C8C", _DOTTED, "."),
}
# What the variants of an entrant are called after its label; their lines are dotted.
VARIANTS = {
    "refined": "refined",
    "unrefined": "not refined",
    "restless": "our acquisition",
    "latent": "latent UCB",
    "versions": "versions kept",
    "by-paper": "the paper's search",
}
_SPARE = (("#7570B3", "p"), ("#A6761D", "*"), ("#66A61E", ">"), ("#E7298A", "1"), ("#444444", "8"))

# In the order of the paper, with its names; it has no LCBench.
ENVIRONMENTS = {
    "mixture1d": "Random Mixture 1d",
    "branin": "Random Branin",
    "camelback": "Camelback Sin-Noise",
    "hartmann6": "Random Hartmann6",
    "glmnet": "GLMNET",
    "rpart": "RPart",
    "xgboost": "XGBoost",
    "lcbench": "LCBench",
}

# The method that all others are compared with.
OURS = "fpacohmap"

# Sizes are for a page of two columns, printed as they are: 7 inches across both of them.
PRINT_STYLE: dict[Any, Any] = {
    "font.size": 7.5,
    "axes.titlesize": 8,
    "axes.labelsize": 7.5,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.color": INK,
    "ytick.color": INK,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.major.size": 2.5,
    "ytick.major.size": 2.5,
    "ytick.minor.size": 1.5,
    "ytick.minor.width": 0.4,
    "legend.fontsize": 7.5,
    "legend.frameon": False,
    "lines.markersize": 3.2,
    # The same picture is the same file.
    "svg.hashsalt": "metaprior",
}


def key_of(name: str) -> str:
    """A name as the tables above have it: `F-PACOH-MAP` and `FPacohMap` are the same method."""
    return re.sub(r"[^a-z0-9]", "", name.lower())


def looks_of(names: Iterable[str]) -> dict[str, Look]:
    """The look of each entrant, methods in the order of the table above and then by name, each
    followed by its variants.

    A method that is not in the table is called by its name and gets a spare look.
    """
    known = list(METHODS)
    found = sorted(
        set(names),
        key=lambda name: (key_of(_method(name)) not in METHODS, _place(known, _method(name)), name),
    )
    strange = [name for name in found if key_of(_method(name)) not in METHODS]
    looks = {}
    for name in found:
        if name in strange:
            colour, marker = _SPARE[strange.index(name) % len(_SPARE)]
            looks[name] = Look(name, colour, _DASH_DOT, marker)
        else:
            looks[name] = _varied(METHODS[key_of(_method(name))], name.split("+")[1:])
    return looks


def _method(name: str) -> str:
    """The name without its variants."""
    return name.split("+")[0]


def _varied(look: Look, variants: list[str]) -> Look:
    if not variants:
        return look
    words = ", ".join(VARIANTS.get(each, each) for each in variants)
    return look._replace(label=f"{look.label}, {words}", dashes=_DOTTED, width=1.1)


def title_of(environment: str) -> str:
    """What an environment is called in the paper, or its own name."""
    return ENVIRONMENTS.get(key_of(environment), environment)


def in_order(environments: Iterable[str]) -> list[str]:
    """Environments in the order of the paper, others after them by name."""
    known = list(ENVIRONMENTS)
    return sorted(set(environments), key=lambda name: (_place(known, name), name))


def _place(known: list[str], name: str) -> int:
    key = key_of(name)
    return known.index(key) if key in known else len(known)
