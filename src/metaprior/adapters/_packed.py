"""A saved prior as one piece, for hosts that keep bytes or text."""

import base64
import io
import tempfile
import zipfile
import zlib
from pathlib import Path

from metaprior.belief import Prior
from metaprior.store import PriorFileError, is_prior_file, load


def pack(folder: Path) -> bytes:
    """The files of a saved prior as one."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(folder.iterdir()):
            if is_prior_file(path.name):
                archive.write(path, path.name)
    return buffer.getvalue()


def unpack(data: bytes, folder: Path) -> Path:
    """The files of a packed prior, written into `folder`; any other file is ignored."""
    folder.mkdir()
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            for name in filter(is_prior_file, archive.namelist()):
                (folder / name).write_bytes(archive.read(name))
    except (zipfile.BadZipFile, zlib.error) as error:
        raise PriorFileError(
            f"The stored prior cannot be unpacked ({error}); restore an older version."
        ) from None
    return folder


def as_text(prior: Prior) -> str:
    """A prior as text without line breaks."""
    with tempfile.TemporaryDirectory() as folder:
        return base64.b64encode(pack(prior.save(Path(folder) / "prior"))).decode()


def from_text(text: str) -> Prior:
    """The prior that `as_text` has written."""
    with tempfile.TemporaryDirectory() as folder:
        return load(unpack(base64.b64decode(text), Path(folder) / "prior"))
