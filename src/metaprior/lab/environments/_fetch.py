"""Downloading the original tables: checked, and never half-written.

figshare's public API lists the files of an article with their sizes and checksums.
"""

import hashlib
import http.client
import json
import os
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from metaprior.lab.environments._learners import LEARNERS
from metaprior.lab.environments._table_files import ORIGINAL_NAME

# OpenML R Bot Benchmark Data, Kühn et al. 2018, doi 10.6084/m9.figshare.5882230, CC BY 4.0.
FIGSHARE = "https://api.figshare.com/v2/articles/5882230"
_TIMEOUT_SECONDS = 60
_CHUNK = 1 << 18
_NETWORK_ERRORS = (urllib.error.URLError, http.client.HTTPException, OSError)


class RemoteTable(NamedTuple):
    """One original table where it can be downloaded; `size` is in bytes."""

    learner: str
    file_name: str
    url: str
    size: int
    md5: str


def remote_tables(url: str = FIGSHARE) -> list[RemoteTable]:
    """The original tables of all learners, as the article at `url` lists them."""
    with _opened(url) as answer:
        try:
            listed = {each["name"]: each for each in json.load(answer)["files"]}
            return [_remote_table(learner, listed) for learner in LEARNERS]
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(
                f"The answer of {url} does not list the tables as expected ({error!r}); give the "
                "address of the article in figshare's API."
            ) from None
        except _NETWORK_ERRORS as error:
            raise _interrupted(url, error) from None


def download(
    table: RemoteTable, folder: Path, on_progress: Callable[[float], None] = lambda fraction: None
) -> Path:
    """The table's file in `folder`, downloaded unless a complete one is there already.

    - `on_progress`: called with the fraction that has arrived.
    """
    path = folder / table.file_name
    part = folder / f".{table.file_name}.part"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if path.is_file() and _md5(path) == table.md5:
            return path
        try:
            _receive(table, part, on_progress)
            os.replace(part, path)
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        raise ValueError(
            f"Cannot write {path}: {error.strerror or error}; make room or name another folder."
        ) from None
    return path


def _receive(table: RemoteTable, part: Path, on_progress: Callable[[float], None]) -> None:
    """Write the table to `part`; an error if what arrives is not what was announced."""
    digest, received = hashlib.md5(usedforsecurity=False), 0
    with _opened(table.url) as answer, part.open("wb") as file:
        while chunk := _chunk(answer, table.url):
            file.write(chunk)
            digest.update(chunk)
            received += len(chunk)
            on_progress(min(received / max(table.size, 1), 1.0))
    if digest.hexdigest() != table.md5:
        raise ValueError(
            f"{table.file_name} arrived damaged: {received} bytes with MD5 {digest.hexdigest()} "
            f"instead of {table.size} with {table.md5}; nothing was kept, try again."
        )


def _remote_table(learner: str, listed: dict[str, Any]) -> RemoteTable:
    file = listed[ORIGINAL_NAME.format(learner)]
    return RemoteTable(
        learner, file["name"], file["download_url"], int(file["size"]), file["computed_md5"]
    )


def _opened(url: str) -> http.client.HTTPResponse:
    if urllib.parse.urlsplit(url).scheme not in ("http", "https"):
        raise ValueError(f"{url!r} cannot be downloaded; give an http or https address.")
    request = urllib.request.Request(url, headers={"User-Agent": "metaprior"})
    try:
        return urllib.request.urlopen(request, timeout=_TIMEOUT_SECONDS)
    except urllib.error.HTTPError as error:
        error.close()
        raise ValueError(
            f"{url} answered {error.code} {error.reason}; try again later, or download the tables "
            "by hand from https://doi.org/10.6084/m9.figshare.5882230."
        ) from None
    except _NETWORK_ERRORS as error:
        reason = getattr(error, "reason", None) or error
        raise ValueError(
            f"Cannot reach {url} ({reason}); check the network connection and try again."
        ) from None


def _chunk(answer: http.client.HTTPResponse, url: str) -> bytes:
    try:
        return answer.read(_CHUNK)
    except _NETWORK_ERRORS as error:
        raise _interrupted(url, error) from None


def _interrupted(url: str, error: Exception) -> ValueError:
    return ValueError(f"The connection to {url} broke off ({error}); try again.")


def _md5(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()
