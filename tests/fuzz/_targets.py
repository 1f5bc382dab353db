"""All targets by name."""

from tests.fuzz._api import optimizer, spaces, tasks
from tests.fuzz._commands import commands
from tests.fuzz._engine import Target
from tests.fuzz._exports import ray_folder, wandb_export
from tests.fuzz._priors import damaged_prior, forged_prior, run_in_python, several_priors
from tests.fuzz._sequences import lifelong
from tests.fuzz._storages import journal, sqlite
from tests.fuzz._tables import past_runs, run_file, space_file

TARGETS: dict[str, Target] = {
    "csv": past_runs,
    "toml": space_file,
    "run file": run_file,
    "damaged prior": damaged_prior,
    "forged prior": forged_prior,
    "lifelong": lifelong,
    "journal": journal,
    "sqlite": sqlite,
    "space": spaces,
    "tasks": tasks,
    "optimizer": optimizer,
    "several priors": several_priors,
    "run in Python": run_in_python,
    "commands": commands,
    "wandb": wandb_export,
    "ray": ray_folder,
}
