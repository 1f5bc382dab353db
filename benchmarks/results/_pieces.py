"""The pieces of the full study: each is one study, run and resumed by itself.

Pieces on a GPU are compiled batches; those of `learn` are processes on CPU cores and need no GPU.
Searches come first; the others read what the searches chose.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

GPU, CPU = "gpu", "cpu"
CHOSEN, BY_PAPER = "chosen", "chosen-by-paper"
# What a search writes, and the folder of the studies that it is collected in.
SOURCES = {CHOSEN: "configurations", BY_PAPER: "configurations-by-paper"}

GP_PRIORS = ("FPacohMap", "PacohMap", "FPacohMap+unrefined", "PacohMap+unrefined")
BASELINES = ("ABLR", "LearnedGP", "NeuralProcess", "FixedGP")
# Ten priors, a network's posterior, and an ensemble of all past runs: a few seeds are a job, so
# that what has finished is kept where a piece is stopped.
COSTLY = ("FPacohVI", "FPacohBNN", "RankWeightedGP")
FEW = 5
ARMS = (
    "FPacohMap+refined",
    "PacohMap+refined",
    "FPacohMap+restless",
    "FPacohMap+unrefined+restless",
    "PacohMap+restless",
)
LATENT = "NeuralProcess+latent"
PLAIN = (*GP_PRIORS, *BASELINES, "FittedGP")


@dataclass(frozen=True)
class Piece:
    """One study.

    - `name`: of the piece, and of its folder among those of the studies.
    - `fields`: of the specification, in place of those of the full preset.
    - `uses`: the folder of the chosen configurations that it reads.
    """

    name: str
    kind: str
    methods: tuple[str, ...]
    fields: dict[str, Any] = field(default_factory=dict)
    device: str = GPU
    uses: str | None = CHOSEN

    def command(self, studies: Path, jobs: int, smoke: bool = False) -> list[str]:
        """The command line, which resumes what is there.

        - `smoke`: tiny, on two environments, whatever the piece's own sizes.
        """
        fields = {"budget": "fast"} if smoke and "Learn" in str(self.methods) else {}
        fields = fields if smoke else self.fields
        options = [
            text
            for name, value in fields.items()
            for text in (f"--{name.replace('_', '-')}", _text(value))
        ]
        uses = [] if self.uses is None else ["--configurations", str(studies / self.uses)]
        return [
            *("metaprior", "study", self.kind, "--smoke" if smoke else "--full"),
            *("--methods", ",".join(self.methods), *options, *uses),
            *("--jobs", str(jobs), "--out", str(studies / self.name)),
        ]


def _search(name: str, methods: tuple[str, ...], **fields: Any) -> Piece:
    return Piece(
        f"search-{name}", "search", methods, {"steps": 50, "block": 16, **fields}, uses=None
    )


def _of_everybody(kind: str, methods: tuple[str, ...], **fields: Any) -> list[Piece]:
    """A study in three pieces: two by price, and `learn` on CPU cores."""
    learners = ("Learn", "Learn+versions") if kind == "lifelong" else ("Learn",)
    return [
        Piece(kind, kind, methods, fields),
        Piece(f"{kind}-costly", kind, COSTLY, {**fields, "block": FEW}),
        Piece(f"{kind}-learn", kind, learners, fields, device=CPU, uses=None),
    ]


PIECES = {
    piece.name: piece
    for piece in (
        _search("gp", GP_PRIORS),
        _search("baselines", BASELINES),
        _search("vi", ("FPacohVI",), draws=32, shapes=2, tasks=5),
        _search("bnn", ("FPacohBNN",), draws=16, shapes=1, tasks=5),
        _search("rwgp", ("RankWeightedGP",), draws=16, shapes=1, tasks=5),
        *_of_everybody("offline", (*PLAIN, *ARMS, LATENT, "RandomSearch")),
        Piece(
            "offline-mixture1d",
            "offline",
            ("FPacohMap", "FPacohVI", "FPacohBNN", "FixedGP", "FittedGP"),
            {"environments": "mixture1d", "block": FEW},
        ),
        Piece("offline-by-paper", "offline", ("FPacohMap", "PacohMap"), uses=BY_PAPER),
        *_of_everybody("supervised", PLAIN),
        *_of_everybody("calibration", PLAIN),
        *_of_everybody("lifelong", (*PLAIN, LATENT, "RandomSearch"), num_steps=2000),
    )
}


def pieces_named(names: Sequence[str]) -> list[Piece]:
    """The pieces of those names, all of them if there are none."""
    if strange := [name for name in names if name not in PIECES]:
        raise ValueError(f"There is no piece {strange[0]!r}; name some of {', '.join(PIECES)}.")
    return [PIECES[name] for name in names] if names else list(PIECES.values())


def _text(value: Any) -> str:
    return ",".join(value) if isinstance(value, tuple) else str(value)
