# %% [markdown]
# # Figure 1: what a learned prior believes
#
# A fixed GP, PACOH-MAP and F-PACOH-MAP learn from the same ten past runs on functions of one
# variable, and then see three points of an unseen function: the paper's first figure.
# `python examples/figure_1.py --out figure-1.png` draws it in less than a minute;
# `METAPRIOR_SMALL=1` trains for a few steps only.

# %%
import argparse
import os

import jax
import numpy as np

import metaprior as mp
from metaprior.lab.plots import prior_and_posterior
from metaprior.plots import Belief, PastQueries

parser = argparse.ArgumentParser(description="Draw prior and posterior of three methods.")
parser.add_argument("--out", default="figure-1.png", help="the file to write, .png, .svg or .pdf")
arguments = parser.parse_args()

small = bool(os.environ.get("METAPRIOR_SMALL"))
num_steps = 200 if small else 4000
grid = np.linspace(-10.0, 10.0, 201)
observed_x = np.array([-6.0, 0.0, 6.0])

# %% Past runs, made by GP-UCB with a fixed GP, and an unseen function
family = mp.lab.environments.Mixture1d()
key_past, key_new = jax.random.split(jax.random.key(0))
past = mp.lab.studies.collect_histories(family, family.num_tasks, family.run_length, key=key_past)
unseen = family.unstack(family.sample_tasks(1, key=key_new))[0]
examples = family.unstack(family.sample_tasks(family.num_tasks, key=jax.random.split(key_past)[0]))


# %% Before and after three observations
# Both have the same weight of their regulariser (a process, or a distribution over weights). As
# published, the learned noise and scale are kept on the new run.
alike = {"kappa": 0.05, "noise_log_spread": 0.0, "scale_log_spread": 0.0, "num_steps": num_steps}
methods = {
    "FixedGP": mp.methods.FixedGP(),
    "PacohMap": mp.methods.PacohMap(**alike),
    "FPacohMap": mp.methods.FPacohMap(**alike),
}


def belief(prior: mp.Prior, x: np.ndarray) -> Belief:
    """What is believed of the unseen function once it has been observed at `x`."""
    y = unseen.evaluate(x[:, None])
    posterior = prior.condition(x[:, None], y)
    mean, std = posterior.predict(grid[:, None])
    samples = posterior.sample(grid[:, None], 3, seed=0)
    return Belief(grid, mean, std, unseen.evaluate(grid[:, None]), x, y, samples)


curves = {}
for name, method in methods.items():
    prior = mp.learn(past, method=method, seed=0)
    curves[name] = (belief(prior, np.zeros(0)), belief(prior, observed_x))
    after = curves[name][1]
    inside = np.mean(np.abs(after.truth - after.mean) <= 1.96 * after.std)
    print(f"{name:<10} the 95 % band after 3 points holds {inside:4.0%} of the unseen function")

# %% The figure
runs = [past.run(i) for i in range(past.num_tasks)]
functions = np.stack([task.evaluate(grid[:, None]) for task in examples])
query_x = np.array([point["x"] for points, _ in runs for point in points])
query_y = np.concatenate([values for _, values in runs])
figure = prior_and_posterior(curves, PastQueries(grid, functions, query_x, query_y))
figure.savefig(arguments.out)
print(f"Wrote {arguments.out}")
