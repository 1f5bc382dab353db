"""`metaprior study`: its commands and their options; `_study_run.py` does the work."""

from pathlib import Path
from typing import Annotated, Any

import typer

study = typer.Typer(
    no_args_is_help=True,
    help="The paper's studies, of any size: resumable, on one core, a GPU or a cluster.",
)

HELP = {
    "supervised": "How well models predict held-out halves of runs: likelihood and calibration.",
    "offline": "Learn from past runs, then optimise unseen tasks: simple and inference regret.",
    "lifelong": "Learn again after every run of a sequence: regret over whole sequences.",
    "search": "Choose hyper-parameters on validation tasks, for use in the other studies.",
    "calibration": "Coverage of the intervals of each level, given a few points of unseen tasks.",
}


def _add(kind: str) -> None:
    """The command of one kind of study. All kinds have the same options; the specification rejects
    those that do not apply to a kind, with the same message as for a file."""

    @study.command(kind, help=HELP[kind])
    def command(
        out: Annotated[
            Path, typer.Option(help="Folder of the study; an unfinished one is resumed.")
        ],
        smoke: Annotated[bool, typer.Option("--smoke", help="Tiny: about two minutes.")] = False,
        full: Annotated[bool, typer.Option("--full", help="The paper's sizes.")] = False,
        spec: Annotated[Path | None, typer.Option(help="TOML file with fields to set.")] = None,
        environments: Annotated[str | None, typer.Option(help="Names, with commas.")] = None,
        methods: Annotated[
            str | None,
            typer.Option(help="Names, with commas; variants after a plus sign."),
        ] = None,
        seeds: Annotated[
            int | None, typer.Option(help="Repetitions, each with its own key.")
        ] = None,
        tasks: Annotated[int | None, typer.Option(help="Unseen tasks per seed.")] = None,
        steps: Annotated[int | None, typer.Option(help="Queries per run.")] = None,
        sequences: Annotated[int | None, typer.Option(help="lifelong: series of tasks.")] = None,
        runs: Annotated[int | None, typer.Option(help="lifelong: runs per sequence.")] = None,
        draws: Annotated[
            int | None, typer.Option(help="search: configurations per method.")
        ] = None,
        shapes: Annotated[
            int | None, typer.Option(help="search: different sizes of those.")
        ] = None,
        points: Annotated[int | None, typer.Option(help="Points to predict of a task.")] = None,
        criterion: Annotated[
            str | None,
            typer.Option(help="search: study (what the studies report) or paper (the paper's)."),
        ] = None,
        readings: Annotated[
            str | None, typer.Option(help="supervised: collected or uniform points, or both.")
        ] = None,
        num_steps: Annotated[
            int | None, typer.Option(help="Training steps, for all methods.")
        ] = None,
        budget: Annotated[
            str | None, typer.Option(help="Of `learn`: fast, normal or thorough.")
        ] = None,
        past_tasks: Annotated[int | None, typer.Option(help="Past runs to learn from.")] = None,
        past_steps: Annotated[int | None, typer.Option(help="Points per past run.")] = None,
        acquisition: Annotated[
            str | None, typer.Option(help="ucb (the paper's), restless (the library's) or latent.")
        ] = None,
        configurations: Annotated[
            Path | None, typer.Option(help="Folder of a search: its settings are used.")
        ] = None,
        jobs: Annotated[int, typer.Option(help="Processes on this machine.")] = 1,
        dask: Annotated[str | None, typer.Option(help="Address of a Dask scheduler.")] = None,
        block: Annotated[
            int | None,
            typer.Option(help="Seeds (search: configurations) per job: 1 seed on a CPU, else all."),
        ] = None,
        chunk: Annotated[
            int | None, typer.Option(help="Seeds at once on an accelerator: bounds its memory.")
        ] = None,
        as_json: Annotated[bool, typer.Option("--json", help="Print JSON, not tables.")] = False,
    ) -> None:
        if smoke and full:
            raise ValueError("A study is either --smoke or --full; give one of them.")
        _prepare()
        from metaprior.cli._study_run import run_study

        fields: dict[str, Any] = {
            **{"environments": environments, "methods": methods, "seeds": seeds, "tasks": tasks},
            **{"steps": steps, "sequences": sequences, "runs": runs, "draws": draws},
            **{"shapes": shapes, "points": points, "criterion": criterion, "readings": readings},
            **{"num_steps": num_steps, "budget": budget},
            **{"past_tasks": past_tasks, "past_steps": past_steps, "acquisition": acquisition},
            **{"block": block, "chunk": chunk},
        }
        code = run_study(
            kind,
            out,
            fields,
            preset="smoke" if smoke else "full" if full else "standard",
            file=spec,
            configurations=configurations,
            workers=jobs,
            dask=dask,
            as_json=as_json,
        )
        raise typer.Exit(code)


for _kind in HELP:
    _add(_kind)


@study.command("plot")
def plot(folder: Annotated[Path, typer.Argument(help="Folder of a study.")]) -> None:
    """Draw the figures and tables of a finished or unfinished study."""
    from metaprior.cli._study_run import draw

    for path in draw(folder):
        typer.echo(path)


def _prepare() -> None:
    from metaprior.cli._app import prepare_jax

    prepare_jax()
