"""What past points cost: the time of one proposal over all of them, and of learning from them."""

import json
import time
from pathlib import Path

import numpy as np
from scipy.stats import rankdata
from sklearn.base import clone
from sklearn.model_selection import KFold, cross_val_predict
from sklearn.neighbors import KNeighborsRegressor

from benchmarks.hosts import _lcbench
from benchmarks.hosts._methods import AX_TRANSFER, METHODS, OURS, Setting
from benchmarks.hosts._past import Cell
from benchmarks.hosts._records import TREES, fit_file, write


def record_of_fits(cell: Cell, told: int, out: Path) -> None:
    """CPU seconds of learning, once; and of a proposal after `told` results, for our optimiser
    with the learned priors and for BOTL, whose fit is made again for every trial. `None` stands for
    what was ended before it was done, and is done again."""
    file = fit_file(out, cell.name)
    if file.is_file() and None not in json.loads(file.read_text())["proposal"].values():
        return
    setting = Setting(cell, out / "priors")
    _ = setting.priors  # so that they are there
    learned = json.loads((out / "priors" / cell.prior_name / "seconds.json").read_text())
    points = sum(int(n) for n in next(iter(setting.past.by_name.values())).lengths)
    record = {"family": cell.family, "past": cell.past, "seed": cell.seed, "told": told}
    record |= {"points": points, "learning": learned}
    seconds: dict[str, float | None] = {n: None for n in (OURS, AX_TRANSFER) if n in METHODS}
    for name in seconds:
        seconds[name] = _proposal(setting, name, told)
        write(file, {**record, "proposal": seconds})


def _proposal(setting: Setting, name: str, told: int) -> float:
    """CPU seconds of asking once more after `told` results."""
    task = setting.cell.unseen()[0]
    searcher = METHODS[name].searcher(setting, task, setting.cell.seed)
    for _ in range(told):
        point = searcher.ask()
        searcher.tell(point, task.values(point))
    start = time.process_time()
    searcher.ask()
    return time.process_time() - start


def record_of_trees(out: Path) -> None:
    """How well the regressor predicts rows of the test data sets that it was not fitted to, and
    how well the nearest configuration does."""
    file = out / TREES
    if file.is_file():
        return
    x, folds, found = (
        _lcbench.encoded(),
        KFold(5, shuffle=True, random_state=0),
        {},
    )
    for name in _lcbench.names("test"):
        y = _lcbench.recorded(name)[:, 0]
        models = {"trees": clone(_lcbench.trees(name)), "nearest": KNeighborsRegressor(1)}
        found[name] = {}
        for kind, model in models.items():
            predicted = np.asarray(cross_val_predict(model, x, y, cv=folds))
            found[name][f"{kind} rank"] = _rank_correlation(predicted, y)
            found[name][f"{kind} R2"] = float(1.0 - np.mean((predicted - y) ** 2) / np.var(y))
    write(file, found)


def _rank_correlation(predicted: np.ndarray, y: np.ndarray) -> float:
    return float(np.corrcoef(rankdata(predicted), rankdata(y))[0, 1])
