# %% [markdown]
# # Compare methods on a family of tasks
#
# Histories of a few one-dimensional tasks are collected with a fixed GP, every method learns from
# them, and each then optimises the same unseen tasks. `METAPRIOR_SMALL=1` makes it quick.

# %%
import os

import jax
import numpy as np

import metaprior as mp
from metaprior.lab.policies import CompiledRestlessBound, SurrogatePolicy

small = bool(os.environ.get("METAPRIOR_SMALL"))
num_steps = 200 if small else 4000
methods = {
    "F-PACOH-MAP": mp.methods.FPacohMap(num_steps=num_steps),
    "PACOH-MAP": mp.methods.PacohMap(num_steps=num_steps),
    "ABLR": mp.methods.ABLR(num_steps=num_steps),
    "Learned GP": mp.methods.LearnedGP(num_steps=num_steps),
    "fixed GP": mp.methods.FixedGP(),
}
if not small:
    methods |= {"NP": mp.methods.NeuralProcess(), "RWGP": mp.methods.RankWeightedGP()}

# %% Past runs, and unseen tasks
family = mp.lab.environments.Mixture1d()
key_history, key_tasks, key_train, key_race = jax.random.split(jax.random.key(0), 4)
history = mp.lab.studies.collect_histories(
    family, family.num_tasks, family.run_length, key=key_history
)
tasks = family.sample_tasks(4 if small else 10, key=key_tasks)
optimum = family.optimum(tasks).value

# %% One row per method
print(f"{'method':<12} {'regret t=5':>11} {'t=10':>9} {'t=20':>9} {'log-likelihood, 8 points':>26}")
for name, method in methods.items():
    surrogate = method.meta_train(history, key=key_train)
    policy = SurrogatePolicy(
        surrogate=surrogate, acquisition=CompiledRestlessBound(), space=family.space
    )
    found = mp.lab.studies.race(policy, tasks, 20, key=key_race)
    regret = mp.metrics.simple_regret(optimum, found.values).mean(axis=0)
    predicted = mp.lab.studies.predict_uniform(surrogate, tasks, (8,), 200, 1, key=key_race)
    likelihood = np.mean(predicted.log_density)
    print(f"{name:<12} {regret[4]:11.2g} {regret[9]:9.2g} {regret[19]:9.2g} {likelihood:26.2f}")
