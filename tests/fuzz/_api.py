"""The Python API, called with whatever comes to hand."""

from pathlib import Path

import numpy as np

import metaprior as mp
from metaprior.lifelong import untrained_prior
from tests.fuzz._damage import VALUES, choice

NUMBERS = [value for value in VALUES if not isinstance(value, (list, dict))]
SPACE = mp.Space(x=mp.Real(0.0, 1.0), n=mp.Integer(1, 8), c=mp.Categorical(["a", "b"]))
POINT = {"x": 0.5, "n": 2, "c": "a"}
MORE = (object(), float, b"x", {1, 2}, (1, 2), np.array([1.0]), np.nan, "0.5", 10**30)


def any_value(rng: np.random.Generator):
    return choice(rng, (*VALUES, *MORE))


def spaces(rng: np.random.Generator, folder: Path) -> None:
    """Dimensions of any bounds; what is taken decodes into itself."""
    kind = int(rng.integers(3))
    if kind == 0:
        given = {"log": bool(rng.integers(2)), "step": choice(rng, (None, 0.1, any_value(rng)))}
        dimension = mp.Real(choice(rng, NUMBERS), choice(rng, NUMBERS), **given)
    elif kind == 1:
        dimension = mp.Integer(any_value(rng), any_value(rng), log=bool(rng.integers(2)))
    else:
        dimension = mp.Categorical([any_value(rng) for _ in range(int(rng.integers(1, 4)))])
    space = mp.Space(**{str(choice(rng, ("x", "", "\x00", "a b"))): dimension})
    unit = rng.uniform(size=(4, space.num_columns))
    points = space.decode(unit)
    again = space.decode(space.encode(points))
    for point, other in zip(points, again, strict=True):
        for name, value in point.items():
            same = value == other[name] or np.isclose(value, other[name], rtol=1e-6, atol=1e-300)
            assert same, "a point that is not the one that was encoded"


def tasks(rng: np.random.Generator, folder: Path) -> None:
    """Past runs of any values."""
    runs = []
    for _ in range(int(choice(rng, (0, 1, 2, 3)))):
        points = [dict(POINT) for _ in range(3)]
        values = [1.0, 2.0, 3.0]
        if rng.random() < 0.7:
            values[int(rng.integers(3))] = any_value(rng)
        if rng.random() < 0.3:
            points[int(rng.integers(3))][choice(rng, ("x", "n", "c", "y"))] = any_value(rng)
        runs.append((points, values))
    direction = choice(rng, ("maximize", "minimize", any_value(rng)))
    made = mp.Tasks.from_runs(runs, space=SPACE, direction=direction)
    assert np.isfinite(np.asarray(made.y)).all(), "values that are no numbers"
    assert np.abs(np.asarray(made.y)).max(initial=0.0) < 1e150, "values whose squares overflow"


def optimizer(rng: np.random.Generator, folder: Path) -> None:
    """An optimiser told, asked and predicted from anything."""
    prior = untrained_prior(SPACE, "maximize")
    made = mp.Optimizer(prior, seed=choice(rng, (0, 1, any_value(rng))))
    kind = int(rng.integers(4))
    if kind == 0:
        point = dict(POINT)
        point[choice(rng, ("x", "n", "c", "y"))] = any_value(rng)
        made.tell(point, 1.0)
    elif kind == 1:
        made.tell(POINT, any_value(rng))
    elif kind == 2:
        made.ask(choice(rng, (-1, 0, "2", 1.5, True, 10**9, 10**30, [], float("nan"))))
        return
    else:
        posterior = prior.condition([POINT], [any_value(rng)])
        mean, std = posterior.predict([POINT])
        assert np.isfinite(mean).all() and np.isfinite(std).all(), "no numbers"
        return
    SPACE.encode([made.ask()])
