"""The results page, from the records of the studies.

    python -m benchmarks.results STUDIES --out docs/results.md

`STUDIES` holds the folders `search` and `search-rwgp`, `chosen` (the configurations
used), `offline`, `offline-rwgp`, `lifelong`, `supervised` and `calibration`, and `run.json`, which
says on what machine they were made and how long that took. Every number of the page is computed
from the records; figures go to `images/results` beside the page.
"""

import argparse
from pathlib import Path

from benchmarks.results._figures import draw_figures
from benchmarks.results._page import page

IMAGES = "images/results"


def main() -> None:
    parser = argparse.ArgumentParser(description="Write the results page.")
    parser.add_argument("studies", type=Path, help="the folder of the studies' folders")
    parser.add_argument("--out", type=Path, default=Path("docs/results.md"), help="the page")
    options = parser.parse_args()
    if not (options.studies / "run.json").is_file():
        parser.error(f"{options.studies} has no run.json; name the folder of the studies' folders.")
    for path in draw_figures(options.studies, options.out.parent / IMAGES):
        print(f"{path} ({path.stat().st_size / 1000:.0f} kB)")
    options.out.write_text(page(options.studies, IMAGES))
    print(options.out)


if __name__ == "__main__":
    main()
