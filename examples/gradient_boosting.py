# %% [markdown]
# # Gradient boosting on one data set after another
#
# The data sets that come with scikit-learn, four questions about each. Gradient boosting has been
# tuned with TPE for the questions about four of them; how much do these studies help with the
# fifth? Each data set is the fifth once, so that the prior never sees the data set that is tuned.
# `METAPRIOR_SMALL=1` makes it quick.

# %%
import importlib.util
import os

import numpy as np
import optuna
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris, load_wine
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.model_selection import StratifiedKFold, cross_val_score

import metaprior as mp
from metaprior.adapters.optuna import MetaPriorSampler, load_tasks

small = bool(os.environ.get("METAPRIOR_SMALL"))
optuna.logging.set_verbosity(optuna.logging.WARNING)

# %% [markdown]
# Three hundred rows at most, so that a trial takes a fifth of a second.

# %%
cancer, wine, digits, iris, diabetes = (
    load(return_X_y=True)
    for load in (load_breast_cancer, load_wine, load_digits, load_iris, load_diabetes)
)
questions = {
    # Measurements of cells, in three groups of ten, and all of them: is it malignant?
    "breast cancer": [
        (cancer[0][:, group], cancer[1] == 0)
        for group in (slice(10), slice(10, 20), slice(20, 30), slice(30))
    ],
    # Chemical analyses: is it the grape?
    "wine": [(wine[0], wine[1] == grape) for grape in range(3)] + [(wine[0][:, 4:], wine[1] == 1)],
    "digits": [
        (digits[0], digits[1] == 8),
        (digits[0], digits[1] == 9),
        (digits[0], digits[1] % 2 == 1),
        (digits[0], digits[1] >= 5),
    ],
    # Flowers by sepals or petals
    "iris": [
        (iris[0][:, leaf], iris[1] == kind) for leaf in (slice(2), slice(2, 4)) for kind in (1, 2)
    ],
    # Is it worse than with a quarter, half, three quarters of all patients? A man or a woman?
    "diabetes": [
        (diabetes[0], diabetes[1] > np.quantile(diabetes[1], q)) for q in (0.25, 0.5, 0.75)
    ]
    + [(np.delete(diabetes[0], 1, axis=1), diabetes[0][:, 1] > 0)],
}


def objective_of(features, answers):
    """What to maximise: how much of the answers' variance the predicted probabilities explain.

    1 minus the cross-validated Brier score in units of the Brier score of who knows the proportion
    of yes and no only: 1 is perfect, 0 is no use, below 0 is worse than that.
    """
    rows = np.random.default_rng(0).permutation(len(answers))[: 100 if small else 300]
    features, answers = features[rows], answers[rows].astype(int)
    ignorance = answers.var()
    folds = StratifiedKFold(3 if small else 5, shuffle=True, random_state=0)

    def objective(trial):
        model = GradientBoostingClassifier(
            n_estimators=50,
            learning_rate=trial.suggest_float("learning_rate", 0.01, 0.5, log=True),
            max_depth=trial.suggest_int("max_depth", 1, 8),
            min_samples_leaf=trial.suggest_int("min_samples_leaf", 1, 20, log=True),
            subsample=trial.suggest_float("subsample", 0.5, 1.0),
            max_features=trial.suggest_float("max_features", 0.1, 1.0),
            random_state=0,
        )
        scores = cross_val_score(model, features, answers, cv=folds, scoring="neg_brier_score")
        return 1 + scores.mean() / ignorance

    return objective


objectives = {
    (name, number): objective_of(*question)
    for name, asked in questions.items()
    for number, question in enumerate(asked[:2] if small else asked)
}

# %% The past: a study by TPE for every question
num_trials = 10 if small else 25
storage = optuna.storages.InMemoryStorage()
for seed, ((name, number), objective) in enumerate(objectives.items()):
    study = optuna.create_study(
        storage=storage,
        study_name=f"{name} {number}",
        direction="maximize",
        sampler=optuna.samplers.TPESampler(seed=1000 + seed),
    )
    study.optimize(objective, n_trials=num_trials)


# %% Each data set in turn, with a prior learned from the studies about the others
def best_so_far(objective, sampler):
    """The best score after each trial of a new study."""
    study = optuna.create_study(direction="maximize", sampler=sampler)
    study.optimize(objective, n_trials=num_trials)
    return np.maximum.accumulate([trial.value for trial in study.trials])


baselines = {"TPESampler": optuna.samplers.TPESampler}
if importlib.util.find_spec("torch"):
    baselines["GPSampler"] = optuna.samplers.GPSampler
else:
    print("Optuna's GPSampler needs PyTorch, which is not installed: it is left out.")

curves = {sampler: {} for sampler in ("MetaPriorSampler", *baselines)}
for held_out in list(questions)[: 1 if small else None]:
    past = [f"{name} {number}" for name, number in objectives if name != held_out]
    prior = mp.learn(load_tasks(storage, studies=past), budget="fast" if small else "normal")
    print(f"{held_out}: {prior.findings.verdict}")
    for seed, (question, objective) in enumerate(objectives.items()):
        if question[0] != held_out:
            continue
        ours = MetaPriorSampler(prior, seed=seed)
        curves["MetaPriorSampler"][question] = best_so_far(objective, ours)
        for sampler, kind in baselines.items():
            curves[sampler][question] = best_so_far(objective, kind(seed=seed))

# %% The best score after so many trials: the mean over the questions about each data set
early, late = (5, 10) if small else (10, 25)
columns = [("MetaPriorSampler", early), *((name, late) for name in baselines)]
columns += [("MetaPriorSampler", late), *((name, early) for name in baselines)]
print(
    "\n| data set |", " | ".join(f"{sampler}, {trials} trials" for sampler, trials in columns), "|"
)
print("|---" * (len(columns) + 1) + "|")
tuned = list(dict.fromkeys(name for name, _ in curves["MetaPriorSampler"]))
means = np.array(
    [
        [
            np.mean([curve[trials - 1] for (of, _), curve in curves[sampler].items() if of == name])
            for sampler, trials in columns
        ]
        for name in tuned
    ]
)
for name, row in zip(tuned, means, strict=True):
    print(f"| {name} |", " | ".join(f"{value:.4f}" for value in row), "|")
print("| **all** |", " | ".join(f"{value:.4f}" for value in means.mean(axis=0)), "|")

# %% How certain is that? Differences to each baseline, question by question
for sampler, trials in columns[1 : 1 + len(baselines)]:
    differences = [
        curve[early - 1] - curves[sampler][question][trials - 1]
        for question, curve in curves["MetaPriorSampler"].items()
    ]
    mean, half_width = mp.metrics.mean_and_interval(differences)
    reached = np.mean(np.array(differences) >= 0)
    print(
        f"MetaPriorSampler after {early} trials minus {sampler} after {trials}: "
        f"{mean:+.4f} ± {half_width:.4f} (95 %), not below it in {reached:.0%} of the studies."
    )
    target = np.mean([curve[trials - 1] for curve in curves[sampler].values()])
    average = np.mean(list(curves["MetaPriorSampler"].values()), axis=0)
    needed = np.flatnonzero(average >= target)
    when = f"after {needed[0] + 1} trials" if len(needed) else f"not within {num_trials} trials"
    print(f"The mean that {sampler} has after {trials} trials, MetaPriorSampler has {when}.")
