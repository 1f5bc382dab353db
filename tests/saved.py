"""A saved prior's files under the hands of a test: which is which, and damage with right checksums.

The checksums are computed here as the documentation says, and not by the code under test.
"""

import hashlib
import json
from pathlib import Path

from safetensors.numpy import load, save


def arrays_of(folder: Path) -> Path:
    """The file that holds the arrays of the prior in `folder`."""
    [path] = folder.glob("prior-*.safetensors")
    return path


def reseal(folder: Path, *, description=lambda content: content, arrays=lambda tensors: tensors):
    """Change what is saved in `folder`, and make the checksums right again."""
    path = arrays_of(folder)
    data = save(arrays(load(path.read_bytes())))
    path.unlink()
    digest = hashlib.sha256(data).hexdigest()
    path = folder / f"prior-{digest[:16]}.safetensors"
    path.write_bytes(data)
    content = json.loads((folder / "prior.json").read_text())
    content["arrays"] = {"file": path.name, "sha256": digest}
    content = description(content)
    if isinstance(content, dict):
        content.pop("sha256", None)
        content["sha256"] = _digest_of(content)
    (folder / "prior.json").write_text(json.dumps(content))


def reseal_json(path: Path, change) -> None:
    """Change what a JSON file with a checksum says, and make the checksum right again.

    - `change`: of the content in place, or returns another one.
    """
    content = json.loads(path.read_text())
    content = change(content) or content
    content.pop("sha256", None)
    content["sha256"] = _digest_of(content)
    path.write_text(json.dumps(content))


def _digest_of(content: dict) -> str:
    plain = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(plain.encode()).hexdigest()
