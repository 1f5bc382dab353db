r"""A family like ZDT1 and ZDT2 (Zitzler, Deb and Thiele 2000), in four dimensions.

$$ f_1 = x_1, \qquad f_2 = g (1 - (f_1 / g)^p), \qquad g = 1 + 15 c \sum_i a_i z_i^2, \qquad
   z = R (x_{2:4} - s) $$

Both are minimised. A task draws whether the front is convex (ZDT1, $p = 1/2$) or concave (ZDT2,
$p = 2$), the shift $s$ in $[0.3, 0.7]^3$, the rotation $R$, and the scale $c$ in $[0.7, 1.3]$;
$a = (0.3, 1, 1.7)$, so that the rotation matters. ZDT has $|z|$, whose kink a shift would move
inside. The front is that of ZDT, $f_2 = 1 - f_1^p$. Volume counts from $(1.1, 2)$.
"""

import numpy as np
from jaxtyping import Float

import metaprior as mp
from benchmarks.hosts._tasks import Point, Task

SPACE = mp.Space(**{f"x{i}": mp.Real(0.0, 1.0) for i in range(1, 5)})
OBJECTIVES = {"f1": "minimize", "f2": "minimize"}
REFERENCE = np.array([1.1, 2.0])
POWERS = (0.5, 2.0)
STRETCH = np.array([0.3, 1.0, 1.7])


def task(*seed: int) -> Task:
    """The task that these numbers draw."""
    rng = np.random.default_rng(seed)
    power = POWERS[int(rng.integers(2))]
    shift, scale = rng.uniform(0.3, 0.7, 3), float(rng.uniform(0.7, 1.3))
    rotation, _ = np.linalg.qr(rng.normal(size=(3, 3)))

    def evaluate(points: list[Point]) -> Float[np.ndarray, "n 2"]:
        x = np.array([[each[name] for name in SPACE.names] for each in points])
        z = (x[:, 1:] - shift) @ rotation.T
        g = 1.0 + 45.0 * scale * np.mean(STRETCH * z**2, axis=1)
        return np.column_stack([x[:, 0], g * (1.0 - (x[:, 0] / g) ** power)])

    # Of the strip below the front's levels, 1 - f1^p, up to 2; and that beyond its right end.
    volume = 1.0 + 1.0 / (power + 1.0) + 0.1 * REFERENCE[1]
    name = "-".join(map(str, seed))
    return Task(name, SPACE, OBJECTIVES, evaluate, REFERENCE, volume)
