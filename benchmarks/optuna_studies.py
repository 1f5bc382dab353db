"""Optuna studies with a learned prior, beside Optuna's own samplers.

    python -m benchmarks.optuna_studies branin             # 3 seeds x 10 tasks, some minutes
    python -m benchmarks.optuna_studies lifelong           # 5 sequences of ten studies, 2 families
    python -m benchmarks.optuna_studies lifelong --families rpart --seeds 1 --budget fast
    python -m benchmarks.optuna_studies branin --records all.json
    python -m benchmarks.optuna_studies branin --show all.json --markdown

`branin`: an SQLite file with 20 studies of random Branin functions, 20 trials each by TPESampler;
`metaprior learn optuna:sqlite:///...` learns from it, as from a shell; then MetaPriorSampler,
GPSampler and TPESampler get 20 trials each on the same unseen functions. Studies are in memory,
samplers take turns on each task, and times are CPU times of a suggestion. The first ten trials of
Optuna's samplers are random and take no time: medians are shown over all trials, and from the
eleventh on.

`lifelong`: ten tasks one after another, a study of 20 trials each by `MetaPriorSampler.lifelong`,
which learns again at the start of every study from the third on; beside it, on the same tasks, the
non-transfer sampler that it begins with, GPSampler and TPESampler. A sequence of Camelback
functions is drawn at random; one of the RPart table is ten of its test data sets in random order,
and the value of a trial is that of the row nearest to what was suggested, for all samplers.

Optuna's samplers have their defaults and the same seeds. Nothing was tuned on the seeds below 1000,
but the sequences 0 to 4 of `lifelong` were looked at before the rule by which a version is kept was
changed: those that are reported begin with 5.
"""

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

import optuna

from benchmarks import _branin_studies as branin
from benchmarks import _lifelong_studies as lifelong
from benchmarks._studies import show

# By family: the records of every seed.
Records = dict[str, list[Any]]
SEEDS = {"branin": 3, "lifelong": 5}
FIRST_SEED = {"branin": 0, "lifelong": 5}
BUDGETS = {"branin": "normal", "lifelong": "fast"}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=tuple(SEEDS))
    parser.add_argument("--families", default=",".join(lifelong.FAMILIES), help="of `lifelong`")
    parser.add_argument("--seeds", type=int, help="how many; 3 for branin, 5 for lifelong")
    parser.add_argument("--first-seed", type=int, help="1000 and above: for tuning")
    parser.add_argument("--tasks", type=int, default=10, help="of `branin`")
    parser.add_argument("--budget", help="of learning; normal for branin, fast for lifelong")
    parser.add_argument("--folder", type=Path, help="for studies and priors; branin reuses them")
    parser.add_argument("--records", type=Path, help="write every number here as JSON")
    parser.add_argument("--show", type=Path, nargs="+", help="show records instead of making them")
    parser.add_argument("--markdown", action="store_true", help="print tables for a page")
    arguments = parser.parse_args()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    records = read(arguments.show) if arguments.show else make(arguments)
    tables = branin_tables(records) if arguments.what == "branin" else lifelong_tables(records)
    for title, header, rows in tables:
        show(title, header, rows, as_markdown=arguments.markdown)


def make(arguments: argparse.Namespace) -> Records:
    """The records of every seed; those there are so far are on the disk."""
    records: Records = {}
    several = arguments.seeds or SEEDS[arguments.what]
    first = FIRST_SEED[arguments.what] if arguments.first_seed is None else arguments.first_seed
    budget = arguments.budget or BUDGETS[arguments.what]
    families = arguments.families.split(",") if arguments.what == "lifelong" else ["branin"]
    with tempfile.TemporaryDirectory() as scratch:
        folder = arguments.folder or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        for family in families:
            for seed in range(first, first + several):
                if arguments.what == "branin":
                    made = branin.evaluate(folder, seed, arguments.tasks, budget)
                else:
                    versions = folder / f"{family}-{seed}"
                    made = lifelong.evaluate(lifelong.FAMILIES[family], versions, seed, budget)
                records.setdefault(family, []).append(made)
                print(f"{family}, seed {seed}: done", flush=True)
                if arguments.records:
                    arguments.records.write_text(json.dumps(records))
    return records


def read(paths: list[Path]) -> Records:
    records: Records = {}
    for path in paths:
        for family, several in json.loads(path.read_text()).items():
            records.setdefault(family, []).extend(several)
    return records


def branin_tables(records: Records) -> list[tuple[str, list[str], list[list[str]]]]:
    title = "Simple regret after t trials, mean ± 95 % interval; time of a suggestion, median"
    return [(title, branin.HEADER, branin.rows(records["branin"]))]


def lifelong_tables(records: Records) -> list[tuple[str, list[str], list[list[str]]]]:
    title = "Simple regret after 20 trials (or 1, 5), mean ± 95 % interval over sequences"
    rows = [row for family in records for row in lifelong.rows(family, records[family])]
    found = [(title, lifelong.HEADER, rows)]
    header = ["sampler", *(f"study {i + 1}" for i in range(lifelong.NUM_STUDIES))]
    for family, several in records.items():
        title = f"{family}: simple regret after 20 trials, mean over {len(several)} sequences"
        found.append((title, header, lifelong.by_study(several)))
    return found


if __name__ == "__main__":
    main()
