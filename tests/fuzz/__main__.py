"""`python -m tests.fuzz --cases 10000`: the counts, and every kind of failure once."""

import argparse
import sys

from tests.fuzz._engine import run_cases, table
from tests.fuzz._targets import TARGETS


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--cases", type=int, default=10_000, help="how many, over all targets")
    parser.add_argument("--seed", type=int, default=0, help="another seed, other cases")
    parser.add_argument("--target", choices=sorted(TARGETS), help="this one only")
    parser.add_argument("--case", type=int, help="this case only, as its failure names it")
    given = parser.parse_args()
    names = list(TARGETS)
    if given.case is not None:
        numbers = range(given.case, given.case + 1)
    elif given.target is not None:
        numbers = range(names.index(given.target), given.cases * len(names), len(names))
    else:
        numbers = range(given.cases)
    tallies = run_cases(TARGETS, numbers, seed=given.seed)
    print(table({name: tally for name, tally in tallies.items() if tally.cases}))
    failed = sum(len(tally.failures) for tally in tallies.values())
    print(f"\n{sum(tally.cases for tally in tallies.values())} cases, {failed} failures")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
