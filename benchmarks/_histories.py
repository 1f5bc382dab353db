"""Past runs for timings, in numpy alone, so that both sides of a comparison get the same numbers
and neither process needs the other's library."""

import numpy as np
from jaxtyping import Float


def family_value(
    x: Float[np.ndarray, "*batch d"], centre: Float[np.ndarray, "*#batch d"]
) -> Float[np.ndarray, "*batch"]:
    r"""$-4 \overline{(x - c)^2} + \frac12 \overline{\cos 3\pi (x - c)}$, a bar being the mean over
    dimensions: a bowl around the task's centre $c$ with smaller optima beside the large one."""
    shifted = x - centre
    return (-4 * shifted**2 + 0.5 * np.cos(3 * np.pi * shifted)).mean(axis=-1)


def histories(
    num_tasks: int, run_length: int, input_dim: int, *, seed: int
) -> tuple[Float[np.ndarray, "n m d"], Float[np.ndarray, "n m"]]:
    """Runs of uniform queries, in the unit cube, on tasks whose centres differ."""
    rng = np.random.default_rng(seed)
    centre = rng.uniform(0.3, 0.7, (num_tasks, 1, input_dim))
    x = rng.uniform(size=(num_tasks, run_length, input_dim))
    return x, family_value(x, centre)
