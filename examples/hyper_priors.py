# %% [markdown]
# # Hyper-priors: what a prior predicts where there are no data
#
# Twelve past runs, all of them in the left half of the domain. Where there are data the learned
# prior follows them; elsewhere it follows the hyper-prior.
# `python examples/hyper_priors.py --out hyper-priors.png` draws three of them in about a minute;
# `METAPRIOR_SMALL=1` trains for a few steps only.

# %%
import argparse
import os

import jax
import jax.numpy as jnp
import numpy as np

import metaprior as mp
from metaprior.lab.plots import hyper_prior_figure
from metaprior.plots import Belief
from metaprior.processes import (
    AbstractProcess,
    Matern,
    SquaredExponential,
    gaussian_process,
    random_sinusoids,
)

parser = argparse.ArgumentParser(description="Draw what three hyper-priors do to a prior.")
parser.add_argument("--out", default="hyper-priors.png", help="the file to write")
arguments = parser.parse_args()

small = bool(os.environ.get("METAPRIOR_SMALL"))
num_steps = 100 if small else 2000
space = mp.Space(x=mp.Real(0.0, 10.0))
grid = np.linspace(0.0, 10.0, 201)

# %% Past runs: similar waves at different levels, seen between 0 and 5
rng = np.random.default_rng(0)
runs = []
for _ in range(12):
    x = rng.uniform(0.0, 5.0, 10)
    height, shift, level = rng.normal([0.8, 0.0, 0.0], [0.2, 0.2, 0.5])
    runs.append((x, level + height * np.sin(1.5 * (x - shift))))
tasks = mp.Tasks.from_runs([(x[:, None], y) for x, y in runs], space=space)

# %% Three processes, in standardised units: one unit is the spread of the data
# The first two are Gaussian, and compared with the prior in closed form; of the third there are
# samples only, and the comparison is estimated from them.
one, half = jnp.log(1.0), jnp.log(0.5)
hyper_priors: dict[str, AbstractProcess] = {
    "smooth: squared exponential": gaussian_process(SquaredExponential(one, one)),
    "rough: Matérn 1/2": gaussian_process(Matern(half, one, 0.5)),
    "waves: random sinusoids": random_sinusoids(frequency=0.35),
}
# Sinusoids fill few of the directions in which functions may vary; a coarser resolution lets the
# prior vary a little in the others.
resolution = {"waves: random sinusoids": 1e-2}


def before(process: AbstractProcess, prior: mp.Prior) -> Belief:
    """The hyper-prior itself, in the units of the runs."""
    with jax.enable_x64(True):
        units = prior.surrogate.standardiser
        x = units.x(jnp.asarray(space.encode(grid[:, None])))
        drawn = process.sample(x, 2000, key=jax.random.key(0))
        drawn = np.asarray(units.y_mean + units.y_std * drawn)
    nothing = np.zeros(0)
    return Belief(grid, drawn.mean(0), drawn.std(0), None, nothing, nothing, drawn[:4])


def after(prior: mp.Prior) -> Belief:
    """What was learned."""
    posterior = prior.condition([], [])
    mean, std = posterior.predict(grid[:, None], noiseless=True)
    samples = posterior.sample(grid[:, None], 4, seed=0)
    return Belief(grid, mean, std, None, np.zeros(0), np.zeros(0), samples)


# %% Learn with each, and compare both halves
panels = {}
for title, process in hyper_priors.items():
    method = mp.methods.FPacohMap(
        hyper_prior=process,
        num_steps=num_steps,
        measurement_variance=resolution.get(title, 1e-4),
    )
    prior = mp.learn(tasks, method=method, seed=0)
    panels[title] = (before(process, prior), after(prior))
    learned = panels[title][1].mean
    left, right = np.ptp(learned[grid <= 5]), np.ptp(learned[grid >= 6])
    print(f"{title:<28} the learned mean moves by {left:.2f} with data, {right:.2f} without")

# %% The figure
figure = hyper_prior_figure(panels, runs)
figure.savefig(arguments.out)
print(f"Wrote {arguments.out}")
