"""Small made-up records for figures: a belief before and after observations, a landscape."""

import numpy as np

from metaprior.plots import Belief, Landscape

X = np.linspace(-1.0, 1.0, 5)
BELIEF = Belief(X, X**2, np.full(5, 0.5), X**3, np.array([0.0]), np.array([0.0]))
PRIOR = BELIEF._replace(observed_x=np.zeros(0), observed_y=np.zeros(0))
LANDSCAPE = Landscape(
    np.linspace(0.0, 1.0, 4),
    np.linspace(0.0, 2.0, 6),
    np.arange(24.0).reshape(6, 4),
    np.array([0.25, 1.5]),
    {"ours": np.array([[0.2, 1.4], [0.3, 1.6]]), "theirs": np.array([[0.9, 0.1]])},
)
