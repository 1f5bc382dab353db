"""Where the versions of a prior are kept: a folder that all workers see, or an artifact store."""

import abc
import tempfile
from pathlib import Path
from urllib.parse import quote

from optuna.artifacts import download_artifact, upload_artifact
from optuna.trial import Trial

from metaprior.adapters import pack, unpack
from metaprior.belief import Prior
from metaprior.store import PriorFileError, load

FOLDER, ARTIFACT = "folder", "artifact"


class AbstractVersionStore(abc.ABC):
    """Keeps priors."""

    @abc.abstractmethod
    def put(self, prior: Prior, number: int, trial: Trial) -> dict[str, str]:
        """Keep version `number`, learned in the attempt `trial`; where it is, for `get`."""

    @abc.abstractmethod
    def get(self, place: dict[str, str]) -> Prior:
        """The prior that was put there."""


class FolderVersionStore(AbstractVersionStore):
    """Priors in a folder, one folder each."""

    def __init__(self, folder: str | Path, name: str):
        inside = quote(name, safe=" ")
        if not inside.strip("."):  # names of this folder and of the one above it
            inside = inside.replace(".", "%2E")
        self._folder = Path(folder) / inside

    def put(self, prior, number, trial):
        # The attempt is part of the name: a worker that was declared dead may still save the same
        # version, and must not replace this one.
        name = f"{number:04d}-{trial.number}"
        prior.save(self._folder / name)
        return {FOLDER: name}

    def get(self, place):
        if FOLDER not in place:
            raise PriorFileError(
                f"The prior is in an artifact store ({place}), not in a folder; give "
                "artifact_store=... to the sampler."
            )
        return load(self._folder / place[FOLDER])


class ArtifactVersionStore(AbstractVersionStore):
    """Priors in an artifact store of Optuna, each packed into one file."""

    def __init__(self, store):
        self._store = store

    def put(self, prior, number, trial):
        with tempfile.TemporaryDirectory() as folder:
            packed = Path(folder) / f"prior-{number:04d}.zip"
            packed.write_bytes(pack(prior.save(Path(folder) / "prior")))
            artifact = upload_artifact(
                artifact_store=self._store, file_path=str(packed), study_or_trial=trial
            )
        return {ARTIFACT: artifact}

    def get(self, place):
        if ARTIFACT not in place:
            raise PriorFileError(
                f"The prior is in a folder ({place}), not in an artifact store; give folder=... "
                "to the sampler."
            )
        with tempfile.TemporaryDirectory() as folder:
            packed = Path(folder) / "prior.zip"
            download_artifact(
                artifact_store=self._store, artifact_id=place[ARTIFACT], file_path=str(packed)
            )
            return load(unpack(packed.read_bytes(), Path(folder) / "prior"))
