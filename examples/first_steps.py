# %% [markdown]
# # First steps: a machine that is recalibrated every day
#
# Ten past days with twelve settings each; today should take far fewer.

# %%
import numpy as np

import metaprior as mp

space = mp.Space(power=mp.Real(0.1, 10.0, log=True), speed=mp.Integer(1, 40))


def quality(setting, day):
    """The machine: its best power drifts from day to day, its best speed hardly does."""
    power, speed = np.log10(setting["power"]), setting["speed"]
    return -8 * (power - 0.2 - day) ** 2 - 0.004 * (speed - 22 - 5 * day) ** 2 + np.cos(3 * power)


# %% Past days: random settings
rng = np.random.default_rng(0)
runs = []
for day in rng.normal(0.0, 0.15, 10):
    settings = space.decode(rng.uniform(size=(12, space.num_columns)))
    runs.append((settings, [quality(setting, day) for setting in settings]))
tasks = mp.Tasks.from_runs(runs, space=space, direction="maximize")

# %% What can be learned from the past days?
prior = mp.learn(tasks, budget="fast", seed=0)
print(prior.findings.verdict)
mean, std = prior.condition([], []).predict([{"power": 1.5, "speed": 22}])
print(f"Before the first try, at power 1.5 and speed 22: {mean[0]:.2f} ± {std[0]:.2f}")

# %% Today
today = 0.1
opt = mp.Optimizer(prior, seed=0)
for trial in range(6):
    setting = opt.ask()
    value = quality(setting, today)
    opt.tell(setting, value)
    print(f"try {trial + 1}: power {setting['power']:.3f}, speed {setting['speed']}: {value:.3f}")

# %% How close is that to the truth?
grid = space.decode(
    np.stack(np.meshgrid(np.linspace(0, 1, 400), np.linspace(0, 1, 400)), -1).reshape(-1, 2)
)
truth = max(quality(setting, today) for setting in grid)
assert opt.best is not None
print(f"best found {opt.best.value:.4f}, best possible {truth:.4f}")
