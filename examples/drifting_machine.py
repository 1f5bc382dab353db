# %% [markdown]
# # A machine that drifts
#
# Every week the best setting of a machine is somewhere else, and it is set up again. A lifelong
# sequence keeps the weeks in a folder, one CSV file per week, and learns from all of them before
# the next one. Does the search get faster? `METAPRIOR_SMALL=1` makes it quick.

# %%
import os
import tempfile

import numpy as np

import metaprior as mp

small = bool(os.environ.get("METAPRIOR_SMALL"))
num_weeks, num_tries = (4, 8) if small else (10, 15)
space = mp.Space(
    power=mp.Real(0.1, 10.0, log=True),
    speed=mp.Integer(1, 60),
    gas=mp.Real(0.0, 1.0),
)


def yield_of(setting, drift):
    """Per cent of good parts: a ridge of power and speed, a best flow of gas, and a false peak."""
    power, speed, gas = np.log10(setting["power"]), setting["speed"] / 60, setting["gas"]
    ridge = ((power - drift[0]) - 1.5 * (speed - 0.5 - drift[1])) / 0.3
    along = ((power - drift[0]) + (speed - 0.5 - drift[1])) / 0.8
    flow = (gas - 0.6 - drift[2]) / 0.25
    false = ((power + 0.7) / 0.2) ** 2 + ((speed - 0.8) / 0.15) ** 2
    return 95 * np.exp(-0.5 * (ridge**2 + along**2 + flow**2)) + 35 * np.exp(-0.5 * false)


# %% [markdown]
# The drift is a random walk. The best possible yield of each week is found on a fine grid, so that
# we know when 99 per cent of it are reached; the machine does not.

# %%
rng = np.random.default_rng(0)
drifts = np.cumsum(rng.normal(0.0, [0.10, 0.05, 0.05], (num_weeks, 3)), axis=0)
axes = np.meshgrid(*[np.linspace(0.0, 1.0, 60)] * 3, indexing="ij")
grid = space.decode(np.stack(axes, axis=-1).reshape(-1, 3))


def tries_needed(yields, best):
    """The first try with 99 per cent of the best; one more than there were if none has them."""
    good = np.flatnonzero(np.asarray(yields) >= 0.99 * best)
    return int(good[0]) + 1 if len(good) else len(yields) + 1


def shown(needed):
    return f"more than {num_tries}" if needed > num_tries else str(needed)


# %% Ten weeks, with and without learning from earlier weeks
needed = {"lifelong": [], "afresh": []}
with tempfile.TemporaryDirectory() as folder:
    machine = mp.lifelong.PriorSequence.begin(folder, space=space, direction="maximize")
    afresh = mp.lifelong.untrained_prior(space, "maximize")
    print(f"tries until 99 % of the best yield, of {num_tries}:")
    print(f"{'week':>4}  {'lifelong':>12}  {'afresh':>12}  version of the prior")
    for week, drift in enumerate(drifts):
        run = f"week-{week + 1:02d}"
        version = machine.ledger.current
        yields = []
        for _ in range(num_tries):
            setting = machine.suggest(run).rows[0].point
            yields.append(yield_of(setting, drift))
            machine.tell(run, yields[-1])

        opt = mp.Optimizer(afresh, seed=week)
        for _ in range(num_tries):
            setting = opt.ask()
            opt.tell(setting, yield_of(setting, drift))
        without = [value for _, value in opt.observations]

        best = max(yield_of(setting, drift) for setting in grid)
        needed["lifelong"].append(tries_needed(yields, best))
        needed["afresh"].append(tries_needed(without, best))
        counts = [shown(each[-1]) for each in needed.values()]
        print(
            f"{week + 1:4d}  {counts[0]:>12}  {counts[1]:>12}  {version or 'none yet'}", flush=True
        )
        machine.finish(run, budget="fast")

# %% Did it get faster?
half = num_weeks // 2
for name, counts in needed.items():
    first, last = np.mean(counts[:half]), np.mean(counts[half:])
    print(f"{name}: {first:.1f} tries a week at first, {last:.1f} in the last {half} weeks")
