"""The `metaprior` command and its options.

Commands import what they need when they run, so that `--help` does not wait for it.
"""

import importlib.util
import os
import signal
from pathlib import Path
from typing import Annotated

import typer

from metaprior.cli._asking import status, suggest
from metaprior.cli._commands import Commands, leave
from metaprior.cli._families import env
from metaprior.cli._study import study
from metaprior.cli._terminal import say

app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def main() -> None:
    """The console script."""
    signal.signal(signal.SIGINT, leave)
    app(prog_name="metaprior")


def _print_version(wanted: bool) -> bool:
    if wanted:
        from metaprior import __version__

        say(f"metaprior {__version__}")
        raise typer.Exit
    return wanted


@app.callback()
def _top(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Learn a reliable prior over functions from past optimisation runs, and find the next
    optimum in far fewer evaluations."""


@app.command()
def demo(
    out: Annotated[
        Path, typer.Option(help="Folder for the picture, the numbers and the learned prior.")
    ] = Path("demo"),
    seed: Annotated[int, typer.Option(min=0, max=2**31 - 1, help="Seed of all randomness.")] = 0,
    quick: Annotated[
        bool, typer.Option("--quick", help="Tiny sizes: shows that it works, not how well.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the numbers as JSON instead of tables.")
    ] = False,
) -> None:
    """Learn a prior from past runs and race it against a fixed GP: a minute, a table, a picture."""
    _require_matplotlib()
    prepare_jax()
    from metaprior.cli._demo import run_demo

    run_demo(out, seed=seed, quick=quick, as_json=as_json)


@app.command()
def learn(
    runs: Annotated[
        list[str],
        typer.Argument(
            metavar="RUNS...",
            help="CSV files, folders or patterns: one run per file, or a column that names the "
            "run. Or the runs of a host: optuna:sqlite:///past.db, mlflow: and a tracking URI or "
            "folder, wandb: and an export, ray: and a folder, ax: and a saved experiment.",
        ),
    ],
    out: Annotated[
        Path | None, typer.Option(help="Folder for the learned prior; by default: prior.")
    ] = None,
    lifelong: Annotated[
        Path | None,
        typer.Option(
            help="Folder of a lifelong sequence that these runs begin or join, instead of --out."
        ),
    ] = None,
    space: Annotated[
        Path | None, typer.Option(help="TOML file of the space; inferred by default.")
    ] = None,
    direction: Annotated[
        str | None,
        typer.Option(
            help="maximize or minimize the value; by default as Optuna's and Ax's studies say, "
            "and maximize for CSV files. Runs of MLflow, W&B and Ray Tune need it."
        ),
    ] = None,
    value: Annotated[
        str | None,
        typer.Option(
            help="Column of the value; by default y, value, objective, score, loss or the last "
            "column of numbers."
        ),
    ] = None,
    metric: Annotated[
        str | None,
        typer.Option(help="Metric of MLflow, W&B, Ray Tune or Ax that is the value."),
    ] = None,
    task: Annotated[
        str | None,
        typer.Option(
            help="Column naming the run; by default task, run or study. Of MLflow, W&B and Ray "
            "Tune: the tag, column or parameter that says which runs are of one task; by default "
            "an experiment, a file or a folder is one."
        ),
    ] = None,
    ignore: Annotated[
        list[str] | None,
        typer.Option(help="Column or logged parameter to leave out; may be repeated."),
    ] = None,
    studies: Annotated[
        list[str] | None,
        typer.Option(help="Study of a host to learn from, by its name; may be repeated."),
    ] = None,
    match: Annotated[
        str | None, typer.Option(help="Pattern of the names of studies, such as 'svm-*'.")
    ] = None,
    feature: Annotated[
        list[str] | None,
        typer.Option(
            help="Column, user attribute of Optuna studies, or tag or parameter of logged runs, "
            "that describes the whole task; may be repeated."
        ),
    ] = None,
    value_bounds: Annotated[
        tuple[float, float] | None,
        typer.Option(help="Lowest and highest possible value, such as 0 100."),
    ] = None,
    unit: Annotated[
        str | None, typer.Option(help="Unit of the value; by default as its column says it.")
    ] = None,
    bounds: Annotated[
        str | None,
        typer.Option(
            help="Bounds of inferred dimensions: those of the data (default), or a little wider."
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, max=2**31 - 1, help="Seed of all randomness.")] = 0,
    budget: Annotated[
        str, typer.Option(help="fast, normal, thorough, or a number of seconds.")
    ] = "normal",
    private: Annotated[
        bool,
        typer.Option("--private", help="Keep no point of a past run in the prior's files."),
    ] = False,
    no_examples: Annotated[
        bool,
        typer.Option(
            "--no-examples", help="Keep no points with values as examples; implied by --private."
        ),
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Replace the prior that is in the folder.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object instead of words.")
    ] = False,
) -> None:
    """Learn a prior from past runs without tuning, and measure it on held-out runs."""
    prepare_jax()
    from metaprior.cli._learn import run_learn
    from metaprior.cli._past_runs import Wanted

    wanted = Wanted(
        space_file=space,
        direction=direction,
        value=value,
        metric=metric,
        task=task,
        ignore=tuple(ignore or ()),
        studies=tuple(studies or ()),
        match=match,
        features=tuple(feature or ()),
        value_bounds=value_bounds,
        unit=unit,
        bounds=bounds,
    )
    if lifelong is not None:
        from metaprior.cli._learn_lifelong import run_learn_lifelong

        if out is not None or force:
            raise ValueError("--lifelong keeps its own versions; leave --out and --force out.")
        if private or no_examples:
            raise ValueError(
                "--lifelong keeps the runs themselves; leave --private and --no-examples out."
            )
        run_learn_lifelong(runs, lifelong, wanted=wanted, seed=seed, budget=budget, as_json=as_json)
        return
    code = run_learn(
        runs,
        Path("prior") if out is None else out,
        wanted=wanted,
        seed=seed,
        budget=budget,
        force=force,
        private=private,
        examples=not (no_examples or private),
        as_json=as_json,
    )
    raise typer.Exit(code)


@app.command()
def report(
    prior: Annotated[Path, typer.Argument(help="Folder of a saved prior.", show_default=False)],
    out: Annotated[
        Path | None,
        typer.Option(help="File for the page; by default report.html in the prior's folder."),
    ] = None,
    feature: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE", help="Feature of a task, to show what is expected there."
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the path and the main numbers as JSON.")
    ] = False,
) -> None:
    """Write a report on a learned prior as one HTML page: verdict, evidence, limits."""
    from metaprior.cli._report import run_report

    run_report(prior, out, feature or [], as_json=as_json)


app.command()(suggest)


# A negative value looks like an option.
@app.command(context_settings={"ignore_unknown_options": True})
def tell(
    run: Annotated[str, typer.Option(help="CSV file of the run; with --lifelong, its name.")],
    value: Annotated[
        str | None, typer.Argument(help="What was measured.", show_default=False)
    ] = None,
    prior: Annotated[Path | None, typer.Option(help="Folder of a saved prior.")] = None,
    lifelong: Annotated[
        Path | None, typer.Option(help="Folder of a sequence of runs whose prior learns.")
    ] = None,
    row: Annotated[
        int | None,
        typer.Option(
            min=2,
            help="Row of the file (the header is row 1); by default the first without a value.",
        ),
    ] = None,
    failed: Annotated[
        bool, typer.Option("--failed", help="The evaluation failed: there is no value.")
    ] = False,
    sure: Annotated[
        bool,
        typer.Option("--yes", help="Accept a value far from what is expected."),
    ] = False,
    finish: Annotated[
        bool, typer.Option("--finish", help="End the run, and learn from it (with --lifelong).")
    ] = False,
    budget: Annotated[
        str, typer.Option(help="For learning: fast, normal, thorough, or a number of seconds.")
    ] = "normal",
    seed: Annotated[int, typer.Option(min=0, max=2**31 - 1, help="Seed of the learning.")] = 0,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print what was done as JSON instead of words.")
    ] = False,
) -> None:
    """Write a measured value into the CSV file of a run; with --finish, learn from the run."""
    if finish:
        prepare_jax()
    from metaprior.cli._tell import run_tell

    run_tell(
        value,
        run,
        prior=prior,
        lifelong=lifelong,
        row=row,
        failed=failed,
        finish=finish,
        budget=budget,
        seed=seed,
        sure=sure,
        as_json=as_json,
    )


app.command()(status)


@app.command()
def doctor(
    gpu: Annotated[
        bool, typer.Option("--gpu", help="Show the devices that JAX sees, too: this imports JAX.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of words.")] = False,
) -> None:
    """Show versions, folders, threads and devices, and what is wrong with them."""
    from metaprior.cli._doctor import run_doctor

    run_doctor(gpu=gpu, as_json=as_json)


app.add_typer(env, name="env")
app.add_typer(study, name="study")


def _require_matplotlib() -> None:
    if importlib.util.find_spec("matplotlib") is None:
        raise ValueError(
            "The demo draws with matplotlib, which is not installed; install it with "
            "`pip install 'metaprior[plots]'`."
        )


def prepare_jax() -> None:
    """Keep compiled code between commands, and the log of the compiler off the screen.

    Most of the time of a short command is compilation, and it is the same every time. Variables
    that the user has set are kept.
    """
    import jax

    from metaprior.learning import keep_programs

    if "JAX_LOGGING_LEVEL" not in os.environ:
        # Code loaded from the cache is announced by pages of harmless "errors".
        jax.config.update("jax_logging_level", "CRITICAL")
    keep_programs()
