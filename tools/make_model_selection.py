"""The shipped table of model selection: real learners on questions about real data.

    python tools/make_model_selection.py src/metaprior/lab/environments/tables

Needs scikit-learn; about eight minutes on one core. Fifty-six questions with a yes or no answer
about the five data sets that come with scikit-learn; each has its own random configurations, and
so many in every branch of the space. The value is the area under the ROC curve on rows that were
not trained on, after training on 60 to 200 others. Draws are seeded with the question's number.
"""

import argparse
import time
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float
from scipy.stats import rankdata
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris, load_wine
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_selection import f_classif
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC

from metaprior.data import Categorical
from metaprior.lab.environments import MODEL_SELECTION

MAX_VALIDATION = 400
# Rows of each branch: more where there are more numbers to choose.
NUM_ROWS = {
    ("svm", "linear"): 60,
    ("svm", "rbf"): 140,
    ("svm", "poly"): 200,
    ("forest",): 140,
    ("boosting",): 200,
    ("neighbours", "uniform"): 30,
    ("neighbours", "distance"): 30,
}


class Difficulty(NamedTuple):
    """What is done to a data set.

    - `rows`: to train on, at most half of all.
    - `flipped`: share of the training answers that are turned around.
    - `noise`: added to standardised features, in standard deviations.
    - `useless`: columns of noise for each real one.
    - `skewed`: how strongly large values are stretched, which trees do not notice.
    """

    rows: int
    flipped: float = 0.0
    noise: float = 0.0
    useless: float = 0.0
    skewed: float = 0.0


DIFFICULTIES = (
    Difficulty(60, noise=0.5),
    Difficulty(200, flipped=0.2, skewed=1.5),
    Difficulty(200, noise=1.5),
    Difficulty(150, useless=2.0, skewed=1.0),
)


class Question(NamedTuple):
    """Rows to train on and rows to be judged on; features standardised by the former."""

    x: Float[np.ndarray, "n d"]
    y: Bool[np.ndarray, " n"]
    x_new: Float[np.ndarray, "m d"]
    y_new: Bool[np.ndarray, " m"]


def subjects() -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Name, features and answers of each question, before anything is done to it."""
    loaders = (load_digits, load_breast_cancer, load_diabetes, load_wine, load_iris)
    loaded: list[Any] = [load(return_X_y=True) for load in loaders]
    digits, cancer, diabetes, wine, iris = loaded
    pixels, digit = digits
    for each in range(10):
        yield f"digits: {each}", pixels, digit == each
    yield "digits: odd", pixels, digit % 2 == 1
    yield "digits: at least 5", pixels, digit >= 5
    yield "digits: odd, by the upper half", pixels[:, :32], digit % 2 == 1
    yield "digits: at least 5, by the lower half", pixels[:, 32:], digit >= 5
    for one, other in ((1, 7), (2, 8), (3, 8), (4, 9), (5, 6)):
        among = (digit == one) | (digit == other)
        yield f"digits: {one} or {other}", pixels[among], digit[among] == one
    groups = {"mean": slice(10), "error": slice(10, 20), "worst": slice(20, 30), "all": slice(30)}
    sex, progress = diabetes[0][:, 1] > 0, diabetes[1]
    for _ in range(3):
        for group, columns in groups.items():
            yield f"cancer: by {group}", cancer[0][:, columns], cancer[1] == 0
        for share in (25, 50, 75):
            above = progress > np.percentile(progress, share)
            yield f"diabetes: above {share} %", diabetes[0], above
        yield "diabetes: sex", np.delete(diabetes[0], 1, axis=1), sex
        for grape in range(3):
            yield f"wine: {grape}", wine[0], wine[1] == grape
    for kind in (1, 2):
        for leaf, columns in (("sepals", slice(2)), ("petals", slice(2, 4))):
            yield f"iris: {kind} by {leaf}", iris[0][:, columns], iris[1] == kind


def questions() -> dict[str, tuple[np.ndarray, np.ndarray, Difficulty]]:
    """All of them by name; a subject gets another difficulty each time that it comes."""
    named: dict[str, tuple[np.ndarray, np.ndarray, Difficulty]] = {}
    met: dict[str, list[int]] = {}
    for name, x, y in subjects():
        times = met.setdefault(name, [len(met)])
        difficulty = DIFFICULTIES[(times[0] + len(times) - 1) % len(DIFFICULTIES)]
        named[name if len(times) == 1 else f"{name}, {len(times)}"] = (x, y, difficulty)
        times.append(len(named))
    return named


def posed(
    x: Float[np.ndarray, "r d"], y: np.ndarray, difficulty: Difficulty, rng: np.random.Generator
) -> Question:
    """A data set made difficult and split."""
    x = (x - x.mean(0)) / np.maximum(x.std(0), 1e-9)
    x = x + difficulty.noise * rng.normal(size=x.shape)
    x = np.column_stack([x, rng.normal(size=(len(x), round(difficulty.useless * x.shape[1])))])
    x = np.sinh(difficulty.skewed * (x + 1)) if difficulty.skewed else x
    order = rng.permutation(len(y))
    rows = min(difficulty.rows, len(y) // 2)
    train, new = order[:rows], order[rows : rows + MAX_VALIDATION]
    flipped = rng.random(rows) < difficulty.flipped
    mean, std = x[train].mean(0), np.maximum(x[train].std(0), 1e-9)
    x = (x - mean) / std
    return Question(x[train], y[train] ^ flipped, x[new], y[new])


def auc(score: Float[np.ndarray, " m"], answer: Bool[np.ndarray, " m"]) -> float:
    r"""Area under the ROC curve: $(R - n_1 (n_1 + 1) / 2) / (n_1 n_0)$ with $R$ the sum of the
    ranks of the $n_1$ rows whose answer is yes."""
    positive = answer.sum()
    above = rankdata(score)[answer].sum() - positive * (positive + 1) / 2
    return float(above / (positive * (len(answer) - positive)))


def value(question: Question, point: dict[str, Any], strongest: np.ndarray) -> float:
    """What the table holds: the learner of `point` on the share `keep` of the features.

    - `strongest`: the features' numbers, by the F-statistic of the training rows.
    """
    kept = strongest[: max(1, round(point["keep"] * len(strongest)))]
    x, x_new = question.x[:, kept], question.x_new[:, kept]
    learner = learner_of(point, len(kept)).fit(x, question.y)
    if point["learner"] == "svm":
        return auc(learner.decision_function(x_new), question.y_new)
    return auc(learner.predict_proba(x_new)[:, 1], question.y_new)


def learner_of(point: dict[str, Any], num_features: int) -> Any:
    if point["learner"] == "svm":
        return SVC(
            kernel=point["kernel"],
            C=point["C"],
            # Per feature: squared distances grow with their number.
            gamma=point.get("gamma", 1.0) / num_features,
            degree=point.get("degree", 3),
            coef0=1.0,
            max_iter=20_000,
            cache_size=20,
        )
    if point["learner"] == "forest":
        return RandomForestClassifier(
            n_estimators=25,
            max_features=point["max_features"],
            min_samples_leaf=point["min_leaf"],
            random_state=0,
        )
    if point["learner"] == "boosting":
        return GradientBoostingClassifier(
            n_estimators=point["rounds"],
            learning_rate=point["rate"],
            max_depth=point["max_depth"],
            max_features=point["max_features"],
            random_state=0,
        )
    return KNeighborsClassifier(n_neighbors=point["neighbours"], weights=point["weights"])


def drawn(branch: tuple[str, ...], rng: np.random.Generator) -> dict[str, Any]:
    """A random configuration of a branch; numbers have three digits, and are exact in the table."""
    choices = iter(branch)
    point: dict[str, Any] = {}
    for name, dimension in zip(MODEL_SELECTION.names, MODEL_SELECTION.dimensions, strict=True):
        if not all(point.get(parent) in values for parent, values in dimension.when):
            continue
        if isinstance(dimension, Categorical):
            point[name] = next(choices)
        else:
            number = dimension.decode(rng.random((1, 1)))[0]
            point[name] = number if isinstance(number, int) else float(f"{number:.3g}")
    return point


def rows_of(
    number: int,
    x: np.ndarray,
    y: np.ndarray,
    difficulty: Difficulty,
    num_rows: Mapping[tuple[str, ...], int] = NUM_ROWS,
) -> list[dict[str, Any]]:
    """The table of one question: so many rows in each branch."""
    rng = np.random.default_rng(number)
    question = posed(x, np.asarray(y, bool), difficulty, rng)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a pixel that is the same in all rows
        strength = np.nan_to_num(f_classif(question.x, question.y)[0])
    strongest = np.argsort(-strength, kind="stable")
    return [
        {**point, "auc": value(question, point, strongest)}
        for branch, several in num_rows.items()
        for point in (drawn(branch, rng) for _ in range(several))
    ]


def column(rows: list[dict], name: str, dimension: Any) -> np.ndarray:
    """One column of the file; what is not active is NaN, and a choice is its number."""
    entries = [row.get(name) for row in rows]
    if isinstance(dimension, Categorical):
        entries = [None if e is None else dimension.choices.index(e) for e in entries]
    return np.array([np.nan if entry is None else entry for entry in entries], float)


def main() -> None:
    parser = argparse.ArgumentParser(description="Make the shipped table of model selection.")
    parser.add_argument("out", type=Path, help="folder for model_selection.npz")
    parser.add_argument("--only", type=int, nargs="+", help="these questions, to look at")
    arguments = parser.parse_args()
    # Support vectors that the limit of iterations stopped are what the limit makes of them.
    warnings.simplefilter("ignore", ConvergenceWarning)
    rows, numbers, every = [], [], questions()
    for number, (name, question) in enumerate(every.items()):
        if arguments.only and number not in arguments.only:
            continue
        start = time.perf_counter()
        made = rows_of(number, *question)
        rows, numbers = rows + made, numbers + [number] * len(made)
        values = np.array([row["auc"] for row in made])
        best = made[int(values.argmax())]
        print(
            f"{number:2d} {name:38s} {time.perf_counter() - start:5.1f} s, median "
            f"{np.median(values):.3f}, best {values.max():.3f}: {best}",
            flush=True,
        )
    arrays = {"question": np.array(list(every)), "question_codes": np.array(numbers, np.uint16)}
    for name, dimension in zip(MODEL_SELECTION.names, MODEL_SELECTION.dimensions, strict=True):
        values, codes = np.unique(column(rows, name, dimension), return_inverse=True)
        arrays[f"{name}_values"], arrays[f"{name}_codes"] = values, codes.astype(np.uint16)
    arrays["auc"] = np.array([row["auc"] for row in rows], np.float32)
    np.savez_compressed(arguments.out / "model_selection.npz", allow_pickle=False, **arrays)
    print(f"{len(rows)} rows of {len(set(numbers))} questions")


if __name__ == "__main__":
    main()
