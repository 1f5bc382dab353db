"""Studies of three sizes: smoke (minutes), standard, and full (the paper's).

Each entry has the fields of a study of that kind; flags and files override them.
"""

from typing import Any

ENVIRONMENTS = ("branin", "camelback", "hartmann6", "glmnet", "rpart", "xgboost", "lcbench")
# The paper's methods, and what is learned by them and by the others.
PAPER = ("FPacohMap", "PacohMap", "ABLR", "LearnedGP", "NeuralProcess", "RankWeightedGP", "FixedGP")
UNREFINED = ("FPacohMap+unrefined", "PacohMap+unrefined")
SEARCHED = (*PAPER, "FPacohVI", "FPacohBNN", *UNREFINED)
MODELS = (*SEARCHED, "FittedGP", "Learn")
RESTLESS = ("FPacohMap+restless", "FPacohMap+unrefined+restless", "PacohMap+restless")
REFINED = ("FPacohMap+refined", "PacohMap+refined")
POLICIES = (*MODELS, *REFINED, *RESTLESS, "NeuralProcess+latent", "RandomSearch")
LIFELONG = (*MODELS, "Learn+versions", "NeuralProcess+latent", "RandomSearch")

# Every field that a kind of study has, with the paper's numbers (section 5 and appendix B) but for
# the search, which has more validation tasks, and lifelong sequences: 25 instead of 5 with 5 seeds
# each, since only other tasks are another sample.
FULL: dict[str, dict[str, Any]] = {
    "supervised": {
        "environments": ENVIRONMENTS,
        "methods": MODELS,
        "seeds": 25,
        "readings": ("collected", "uniform"),
    },
    "offline": {
        "environments": ENVIRONMENTS,
        "methods": POLICIES,
        "seeds": 25,
        "tasks": 10,
        "steps": 100,
        "acquisition": "ucb",
    },
    "lifelong": {
        "environments": ENVIRONMENTS,
        "methods": LIFELONG,
        "seeds": 1,
        "sequences": 25,
        "runs": 10,
        "steps": 20,
        "acquisition": "ucb",
    },
    "search": {
        "environments": ENVIRONMENTS,
        "methods": SEARCHED,
        "seeds": 3,
        "tasks": 10,
        "steps": 100,
        "acquisition": "ucb",
        "draws": 128,
        "shapes": 8,
        "contexts": (1, 8),
        "points": 200,
        "criterion": "study",
    },
    "calibration": {
        "environments": ("mixture1d", *ENVIRONMENTS),
        "methods": MODELS,
        "seeds": 25,
        "tasks": 10,
        "contexts": (1, 8),
        "points": 200,
    },
}

# The paper's protocols and methods with fewer repetitions.
_FEWER: dict[str, dict[str, Any]] = {
    "supervised": {"seeds": 5},
    "offline": {"seeds": 3, "steps": 50},
    "lifelong": {"sequences": 3},
    "search": {"draws": 16, "shapes": 1, "steps": 30, "seeds": 1, "tasks": 5},
    "calibration": {"seeds": 3},
}

_LITTLE = {"environments": ("mixture1d", "glmnet"), "seeds": 2, "num_steps": 300}
_SHORT = {"past_tasks": 6, "past_steps": 8}
_MODELS, _POLICIES = ("FPacohMap", "PacohMap", "FixedGP"), ("FPacohMap", "FixedGP")
_TINY: dict[str, dict[str, Any]] = {
    "supervised": {"methods": _MODELS, **_SHORT},
    "offline": {"methods": (*_POLICIES, "RandomSearch"), "tasks": 3, "steps": 8, **_SHORT},
    "lifelong": {"methods": _POLICIES, "sequences": 1, "runs": 4, "steps": 6},
    "search": {
        **{"methods": _POLICIES, "tasks": 3, "steps": 8, "points": 50},
        **{"draws": 4, "shapes": 1, **_SHORT},
    },
    "calibration": {"methods": _MODELS, "tasks": 3, "points": 50, **_SHORT},
}

KINDS = tuple(FULL)
_SHARED = {kind: (*PAPER, "RandomSearch") for kind in ("offline", "lifelong")}
STANDARD = {
    kind: FULL[kind] | {"methods": _SHARED.get(kind, PAPER)} | _FEWER[kind] for kind in KINDS
}
SMOKE = {kind: FULL[kind] | _LITTLE | _TINY[kind] for kind in KINDS}
PRESETS = {"standard": STANDARD, "smoke": SMOKE, "full": FULL}

# Optional fields: training steps, the budget of `learn`, the sizes of histories, and how the work
# is divided: seeds per job (configurations of a search), and how many of these an accelerator works
# on at once. A lifelong study begins without histories.
_PAST, _CUT = ("past_tasks", "past_steps"), ("block", "chunk")
OPTIONAL: dict[str, tuple[str, ...]] = {
    "supervised": ("num_steps", "budget", *_PAST, *_CUT),
    "offline": ("num_steps", "budget", *_PAST, *_CUT),
    "lifelong": ("num_steps", "budget", *_CUT),
    "search": ("num_steps", *_PAST, *_CUT),
    "calibration": ("num_steps", "budget", *_PAST, *_CUT),
}
