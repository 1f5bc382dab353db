"""Writing a report: one file, atomically, never over a file that is not a report."""

from pathlib import Path

from metaprior.belief import Prior
from metaprior.files import read_file, replace_file
from metaprior.plots import require_matplotlib

GENERATOR = "metaprior"
_MARK = f'<meta name="generator" content="{GENERATOR}'


def write_report(prior: Prior, path: str | Path) -> Path:
    """Write the report on `prior` to `path` as one HTML page; an earlier report is replaced.

    The page needs no network and no scripts. Drawing it needs matplotlib: the extra `plots`.
    """
    path = Path(path)
    require_matplotlib("A report")
    _require_free(path)
    # Imported here: matplotlib takes longer to load than most commands take to run.
    from metaprior import __version__
    from metaprior.report._page import page

    text = page(prior, f"{GENERATOR} {__version__}")
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, text.encode())
    return path


def _require_free(path: Path) -> None:
    """Refuse a path that holds anything but a report."""
    if path.is_dir():
        raise ValueError(
            f"Cannot write the report to {path}: it is a folder; name a file, such as "
            f"{path / 'report.html'}."
        )
    try:
        is_free = _MARK.encode() in read_file(path, first=1000)
    except FileNotFoundError:
        return
    except OSError:  # a device, or a pipe
        is_free = False
    if not is_free:
        raise ValueError(
            f"Cannot write the report to {path}: a file that is not a report is there; name "
            "another, or remove it."
        )
