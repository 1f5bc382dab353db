"""Several values of one run: a prior for each of them."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from metaprior.belief._prior import Prior
from metaprior.data import Features, Space
from metaprior.words import Summary, listed


@dataclass(frozen=True, repr=False)
class Priors:
    """One prior per value that a query returns, all of them over one space.

    - `objectives`: by name, each to be maximised or minimised, as its prior says.
    - `constraints`: by name, each feasible at or below 0; `None` for one without past runs,
      which is modelled from the run alone.
    """

    objectives: Mapping[str, Prior]
    constraints: Mapping[str, Prior | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.objectives:
            raise ValueError("There is no objective; give a prior for at least one.")
        both = [name for name in self.objectives if name in self.constraints]
        if both:
            raise ValueError(f"{both[0]!r} is an objective and a constraint; give it once.")
        first, *others = self.learned.items()
        for name, prior in others:
            if prior.space != first[1].space:
                raise ValueError(
                    f"The prior of {name!r} is for the space {prior.space}, that of {first[0]!r} "
                    f"for {first[1].space}; learn all of them over one space."
                )
        for name, prior in self.constraints.items():
            if prior is not None and prior.direction != "minimize":
                raise ValueError(
                    f"The prior of the constraint {name!r} was learned to {prior.direction}; a "
                    "constraint holds at or below 0: learn it to minimize."
                )

    @property
    def learned(self) -> dict[str, Prior]:
        """All priors by name, objectives first."""
        known = {name: prior for name, prior in self.constraints.items() if prior is not None}
        return {**self.objectives, **known}

    @property
    def space(self) -> Space:
        """The space of all of them."""
        return next(iter(self.objectives.values())).space

    def __getitem__(self, name: str) -> Prior:
        if name not in self.learned:
            raise KeyError(f"There is no prior of {name!r}; there are {list(self.learned)}.")
        return self.learned[name]

    def for_task(self, features: Features) -> "Priors":
        """The priors for a task of which `features` are known: see `Prior.for_task`."""
        names = {name for prior in self.learned.values() for name in prior.features.names}
        unknown = {name: value for name, value in features.items() if name not in names}

        def known(prior: Prior) -> Features:
            """What this prior knows of them; with what no prior knows, which is an error."""
            own = {n: value for n, value in features.items() if n in prior.features.names}
            return {**own, **unknown}

        return replace(
            self,
            objectives={name: p.for_task(known(p)) for name, p in self.objectives.items()},
            constraints={
                name: None if p is None else p.for_task(known(p))
                for name, p in self.constraints.items()
            },
        )

    def save(self, folder: str | Path) -> Path:
        """Write the priors to a folder: one folder for each, and a list of them."""
        from metaprior.store import save_priors

        return save_priors(self, folder)

    def __repr__(self) -> str:
        return self._summary().as_text()

    def _repr_html_(self) -> str:
        return self._summary().as_html()

    def _summary(self) -> Summary:
        goals = [f"{prior.direction} {name}" for name, prior in self.objectives.items()]
        allowed = [
            f"{name} <= 0" + ("" if prior is not None else " (from the run alone)")
            for name, prior in self.constraints.items()
        ]
        named = zip(self.space.names, self.space.dimensions, strict=True)
        return Summary(
            "Priors",
            [
                ("space", listed([f"{name}={dimension}" for name, dimension in named], 4)),
                ("objectives", ", ".join(goals)),
                ("constraints", ", ".join(allowed) or "none"),
            ],
        )
