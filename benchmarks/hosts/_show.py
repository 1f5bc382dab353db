"""The page: what was asked, what was found, and the targets that follow from it."""

import numpy as np

from benchmarks.hosts import _methods as names
from benchmarks.hosts._measures import STEPS
from benchmarks.hosts._past import FAMILIES
from benchmarks.hosts._records import Records
from benchmarks.hosts._tables import difference, differences, means, runs_of, shown, table
from metaprior.words import listed
from tools.wrap_docs import wrapped

ORDER = (
    names.AX_PRIORS,
    names.AX_DEFAULT,
    names.AX_TRANSFER,
    names.OURS,
    names.SAMPLER,
    names.TPE,
    names.GP,
    names.RANDOM,
)
TITLES = {
    "lcbench": "LCBench, accuracy and cost",
    "lcbench-accuracy": "LCBench, accuracy alone",
    "zdt": "Like ZDT1 and ZDT2",
}
METHODS = [
    [
        names.AX_PRIORS,
        "`metaprior.adapters.ax.generation_strategy`: the first trial from the priors, then "
        "qLogNEI or qLogNEHVI with learned models",
    ],
    [
        names.AX_DEFAULT,
        "what a `Client` does if it is told nothing: the centre, Sobol points, then qLogNEI or "
        "qLogNEHVI",
    ],
    [
        names.AX_TRANSFER,
        "`Generators.BOTL`: a multi-task GP over all past points and the run, fitted anew for "
        "every trial",
    ],
    [names.OURS, "`Optimizer`, or `MultiOptimizer` for two objectives, with the same priors"],
    [names.SAMPLER, "the same priors in an Optuna study"],
    [
        f"{names.TPE}, {names.GP}",
        "Optuna's, with default settings: ten random trials first",
    ],
    [names.RANDOM, "uniform points"],
]
HEAD = """# Learned priors in their hosts

How learned priors do in Ax and in Optuna, beside what these hosts have of their own and beside our
own optimiser, on tasks that no prior was learned from. Measured on {made} by

```console
{commands}
python -m benchmarks.hosts show --out hosts/ --pack benchmarks/hosts/records.json.gz
```

The whole benchmark has nine priors per cell, all eleven test tasks, 2, 10 and 24 past tasks for
every family, and the default budget of `learn`. It can be stopped and continued:

```console
python -m benchmarks.hosts run --out hosts/ --workers 16
python -m benchmarks.hosts fits --out hosts/
```

## What was measured

- **Hypervolume regret** after 5, 10, 20 and 30 trials: the share of the volume under the best known
  front that the trials so far do not dominate. It is 1 until a trial is better than the reference
  in all objectives. With one objective it is the distance to the best value, as a share of the
  distance from the reference to it. No method is told the reference.
- **Time**: CPU seconds of asking and telling, on one thread, of a machine that also did other work.
- **The unit of replication is the prior**: its past tasks, its past runs, its unseen tasks and all
  random numbers are drawn from one seed, and the mean over its unseen tasks is one number.
  Differences are between methods on the same tasks of the same priors, with 95 % intervals of
  Student. *Runs* are pairs of prior and task. Means of rows with different numbers of runs are over
  different tasks, so compare such rows by their differences, which are over the tasks of both.
- **Settings**: where our optimiser counts volume from, if no reference is given
  (`bo.reference_below`), was chosen on development data sets and on problems of other seeds than
  those below.
- **Past runs** are 25 points each on 2, 10 or 24 past tasks, by Optuna's TPE for both objectives,
  ten of the points random. `learn_outputs(..., budget="{budget}")` learns a prior per objective.

`lcbench`: accuracy and a proxy for the cost of training, `log(max_units * num_layers)`, of neural
networks on 35 data sets ({split}). Hosts ask anywhere in the seven dimensions and the table has
2,000 configurations, so accuracy is that of a **fixed regressor per data set**, 100 extra trees
fitted to all its rows: at a recorded configuration it returns the recorded accuracy, between them
it is smoother than any single row, and it never leaves their range, so that the best recorded
accuracy is the best there is. {trees}The cost is exact, and the same function on every data set: a
prior of it has little left to learn on the run. No recorded network has five layers; five cost more
than four and are as accurate. The reference is the median recorded accuracy of the data set and the
highest cost of the space, log 5120; the best known front is that of all recorded configurations
with nine widths and one to four layers, refined near the front. `lcbench-accuracy` is the first
objective alone, with the prior that was learned for it there.

`zdt`: problems like ZDT1 and ZDT2 in four dimensions, with a random shift in [0.3, 0.7], a random
rotation and a random scale of the distance to the front, which is squared (see
`benchmarks/hosts/_zdt.py`). The front is known exactly; the reference is (1.1, 2).

## Methods

{methods}
What had to be done to run BOTL in Ax 1.3.1: import `ax.adapter.transfer_learning.adapter`, which
registers it; put past experiments, as `AuxiliarySource`, into
`experiment.auxiliary_experiments_by_purpose`; and propose the first trial without it (here the
centre of the space), since it fails with an `IndexError` as long as the run has no result. It does
run with two objectives. Choosing by cross-validation between BOTL and no transfer is off: that
would fit everything again for each trial.

With two objectives, BoTorch 0.18 compiles a C++ kernel on first use, where it finds a compiler. A
process that is killed meanwhile leaves a lock for which all later ones wait in silence; removing
`~/.cache/torch_extensions` helps.
"""

VERDICTS = """A difference is *shown* if its 95 % interval excludes zero. "The same within the
interval" is met if it does not; with few priors that says little, so mind its width.
"""


def page(records: Records) -> str:
    """All of it, in Markdown."""
    budgets = sorted({record["budget"] for record in records.runs})
    text = HEAD.format(
        made=records.made,
        commands="\n".join(records.commands),
        budget=listed(budgets),
        split="24 for past runs, 11 unseen, as in `benchmarks/field/split.json`",
        trees=_trees(records),
        methods=table(["name", "what"], METHODS),
    )
    text += f"\n## Targets\n\n{VERDICTS}\n{_targets(records)}"
    for family in FAMILIES:
        text += _family(records, family)
    return wrapped(text + _fits(records))


def _family(records: Records, family: str) -> str:
    sizes = {r["past"] for r in records.runs if r["family"] == family and r["past"] is not None}
    text = f"\n## {TITLES[family]}\n" if sizes else ""
    for past in sorted(sizes, reverse=True):
        runs = runs_of(records.runs, family, past)
        text += f"\n### {past} past tasks\n\nHypervolume regret:\n\n{means(runs, ORDER)}"
        paired = differences(runs, ORDER, names.OURS)
        text += f"\nDifference from our optimiser:\n\n{paired}" if paired else ""
    return text


def _targets(records: Records) -> str:
    rows = []
    for family in ("zdt", "lcbench"):
        for past in _sizes(records, family):
            runs = runs_of(records.runs, family, past)
            for other in (names.TPE, names.GP):
                found = difference(runs, names.SAMPLER, other, 20)
                if found is not None:
                    what = f"{TITLES[family]}, {past} past tasks: MetaPriorSampler below {other}"
                    met = found.mean + found.half < 0.0
                    missed = found.mean - found.half > 0.0
                    verdict = "met" if met else "missed" if missed else "not shown"
                    rows.append([what, "20", shown(found), f"{found.priors}", verdict])
    for past in _sizes(records, "lcbench-accuracy"):
        runs = runs_of(records.runs, "lcbench-accuracy", past)
        for t in STEPS:
            found = difference(runs, names.AX_PRIORS, names.OURS, t)
            if found is not None:
                what = f"{TITLES['lcbench-accuracy']}, {past} past tasks: Ax, our priors, as "
                what += "Optimizer within the interval"
                verdict = "met" if abs(found.mean) <= found.half else "missed"
                verdict = verdict if found.priors > 1 else "not shown"
                rows.append([what, f"{t}", shown(found), f"{found.priors}", verdict])
    return table(["target", "trial", "difference in regret", "priors", "verdict"], rows)


def _sizes(records: Records, family: str) -> list[int]:
    found = {r["past"] for r in records.runs if r["family"] == family and r["past"] is not None}
    return sorted(found, reverse=True)


def _trees(records: Records) -> str:
    if not records.trees:
        return ""
    each = {
        name: float(np.median([scores[name] for scores in records.trees.values()]))
        for name in next(iter(records.trees.values()))
    }
    return (
        "On rows that it was not fitted to (five folds, median over the test data sets) its rank "
        f"correlation with the recorded accuracy is {each['trees rank']:.2f} and its \\(R^2\\) "
        f"{each['trees R2']:.2f}; for the nearest recorded configuration they are "
        f"{each['nearest rank']:.2f} and {each['nearest R2']:.2f}. "
    )


def _fits(records: Records) -> str:
    if not records.fits:
        return ""
    rows = []
    for record in sorted(records.fits, key=lambda each: each["past"]):
        seconds = record["proposal"]
        transfer = seconds.get(names.AX_TRANSFER)
        cells = [
            "not finished" if transfer is None else f"{transfer:.3g}",
            f"{seconds[names.OURS]:.3g}",
            f"{record['learning']['seconds']:.3g}",
        ]
        rows.append([*(f"{record[key]}" for key in ("past", "points", "told")), *cells])
    header = [
        "past tasks",
        "past points",
        "results so far",
        "BOTL, per trial",
        "Optimizer, per trial",
        "learned once",
    ]
    return (
        "\n## Time as the past grows\n\nCPU seconds on LCBench, accuracy alone: the proposal of a "
        "trial, which for BOTL includes the fit of one exact GP to all points; and learning the "
        "priors of both objectives, which happens once for all runs to come.\n\n"
        f"{table(header, rows)}"
    )
