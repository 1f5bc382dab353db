"""`python -m tests.kill --kills 1000`: the counts, and every failure."""

import argparse
import sys
import tempfile
from pathlib import Path

import numpy as np

from tests.kill._engine import Scene, Tally, run_scene
from tests.kill._files import Optimising, Saving, SavingSeveral, Sequence, Telling
from tests.kill._learning import run_learning
from tests.kill._storages import SequenceInStorage, Study

# Of a thousand kills, how many each scene gets; the last one is `metaprior learn`.
SHARES: dict[str, tuple[type[Scene] | None, int]] = {
    "tell, suggest": (Telling, 330),
    "save": (Saving, 275),
    "save several": (SavingSeveral, 120),
    "save a run": (Optimising, 120),
    "lifelong": (Sequence, 100),
    "study": (Study, 25),
    "lifelong study": (SequenceInStorage, 25),
    "learn": (None, 5),
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.kill", description=__doc__)
    parser.add_argument("--kills", type=int, default=1000, help="how many, over all scenes")
    parser.add_argument("--seed", type=int, default=0, help="another seed, other moments")
    parser.add_argument("--scene", choices=SHARES, help="this one only")
    given = parser.parse_args()
    tallies: dict[str, Tally] = {}
    with tempfile.TemporaryDirectory() as scratch:
        for i, (name, (kind, share)) in enumerate(SHARES.items()):
            if given.scene not in (None, name):
                continue
            kills = given.kills if given.scene else round(given.kills * share / 1000)
            rng, folder = np.random.default_rng([given.seed, i]), Path(scratch) / str(i)
            if kills and kind is None:
                tallies[name] = run_learning(kills, folder, rng)
            elif kills and kind is not None:
                tallies[name] = run_scene(kind, kills, folder, rng)
    print(table(tallies))
    failed = sum(len(tally.failures) for tally in tallies.values())
    print(f"\n{sum(tally.kills for tally in tallies.values())} kills, {failed} failures")
    return 1 if failed else 0


def table(tallies: dict[str, Tally]) -> str:
    """The counts as lines of text, and every failure."""
    lines = [f"{'scene':16}{'kills':>7}{'done':>7}{'left files':>12}{'at once':>9}{'failed':>8}"]
    for name, tally in tallies.items():
        counts = f"{tally.kills:7}{tally.done:7}{tally.hidden:12}{tally.most_hidden:9}"
        lines.append(f"{name:16}{counts}{len(tally.failures):8}")
    for name, tally in tallies.items():
        lines += [f"\n{name}, {failure}" for failure in tally.failures[:10]]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
