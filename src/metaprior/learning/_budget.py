"""How much work goes into the choice of a configuration."""

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Budget:
    """The size of a race.

    - `candidates`: how many configurations start, if the caller names none.
    - `checkpoints`: numbers of training steps after which all remaining configurations are scored.
    - `rungs`: those of them after which the worse half of a lane stops.
    - `folds`: parts of the past runs, each held out once.
    - `members`: seeds of the winner, to be used together if that scores better.
    - `feature_dims`: dimensions of the kernel's feature space that are tried by default.
    - `seconds`: when to stop, however far the race is; `None` for never. A race against the clock
      may end differently on another machine.
    - `races_methods`: whether other methods race as well; each takes a compilation of its own.
    - `few_steps`: trainings are so short that compiling quickly saves more than fast code.
    """

    name: str
    candidates: int
    checkpoints: tuple[int, ...]
    rungs: tuple[int, ...]
    folds: int
    members: int
    feature_dims: tuple[int, ...] = (6,)
    seconds: float | None = None
    races_methods: bool = False
    few_steps: bool = False


BUDGETS = {
    "fast": Budget("fast", 8, (20, 50, 100, 200, 400), (100, 200), 3, 1, few_steps=True),
    "normal": Budget(
        "normal",
        16,
        (20, 50, 100, 200, 400, 700, 1000, 1500, 2000, 3000),
        (100, 400, 1000),
        4,
        3,
    ),
    "thorough": Budget(
        "thorough",
        48,
        (20, 50, 100, 200, 400, 700, 1000, 1500, 2000, 3000, 5000),
        (100, 400, 1000, 2000),
        5,
        5,
        (2, 6),
        races_methods=True,
    ),
}


def budget_named(budget: str | float) -> Budget:
    """One of the named budgets, or one for that many seconds."""
    if isinstance(budget, str):
        if budget not in BUDGETS:
            raise ValueError(
                f"The budget is {budget!r}; give one of {', '.join(BUDGETS)}, or a number of "
                "seconds."
            )
        return BUDGETS[budget]
    if isinstance(budget, bool) or not isinstance(budget, int | float):
        raise TypeError(
            f"The budget is {budget!r}; give one of {', '.join(BUDGETS)}, or a number of seconds."
        )
    if not 0 < budget < float("inf"):
        raise ValueError(f"The budget is {budget!r} seconds; give a positive number.")
    size = BUDGETS["fast" if budget < 20 else "normal" if budget < 120 else "thorough"]
    return replace(size, name=f"{budget:g} seconds", seconds=float(budget))
