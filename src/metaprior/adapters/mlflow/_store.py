"""Opening an MLflow store for reading: nothing is created, and no database is migrated.

MLflow creates a store that does not exist, and brings tables of an older version up to date. When
history is read, neither is what the user wants.
"""

import logging
import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import unquote, urlsplit

import mlflow
from mlflow import MlflowClient
from mlflow.exceptions import MlflowException

from metaprior.adapters import require_one_at, shown_address, without_secrets
from metaprior.words import cut

# Folders of file stores are read although MLflow no longer develops them.
_SETTINGS = {"MLFLOW_ALLOW_FILE_STORE": "true"}
# For the first request: MLflow's own patience with a server that is not there is minutes.
_IMPATIENT = {
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "5",
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1",
    "MLFLOW_HTTP_REQUEST_BACKOFF_FACTOR": "0",
}
_DATABASES = ("sqlite", "postgresql", "mysql", "mssql")
_MOST_LETTERS = 200
_IN_SHORT = ("Failed to establish", "Failed to resolve", "Connection to ", "Read timed out")


@contextmanager
def reading(store: str | Path) -> Iterator[str]:
    """The tracking URI of the store, checked; a failure inside the context is a `ValueError` of one
    sentence.

    - `store`: the URI of a server or a database, or the path of a file store or of an SQLite file.
    """
    with warnings.catch_warnings(), _settings(_SETTINGS), _silent():
        warnings.simplefilter("ignore")  # about MLflow's own use of its libraries
        uri = _uri(str(store))
        try:
            with _settings(_IMPATIENT):
                MlflowClient(tracking_uri=uri).search_experiments(max_results=1)
            yield uri
        except _what_stores_raise() as error:
            raise ValueError(
                f"{called(store)} cannot be read ({_reason(error, uri)}); check the address, and "
                "that a server is running."
            ) from None


def _what_stores_raise() -> tuple[type[Exception], ...]:
    errors = (MlflowException, OSError)
    if "sqlalchemy" not in sys.modules:  # only stores in databases need it
        return errors
    from sqlalchemy.exc import SQLAlchemyError

    return (*errors, SQLAlchemyError)


def called(store: str | Path) -> str:
    """What to call a store in a sentence; passwords are hidden."""
    return shown_address(str(store)) if "://" in str(store) else str(store)


def _uri(store: str) -> str:
    """The tracking URI that a store stands for, if there is something to be read."""
    scheme = urlsplit(store).scheme.partition("+")[0]
    if scheme in _DATABASES:
        require_one_at(store)
        _require_tables(store)
        return store
    if scheme == "file":
        return _file_store(Path(unquote(urlsplit(store).path)), store)
    if len(scheme) > 1 or store == "databricks":  # not the letter of a drive
        return store
    path = Path(store)
    if path.is_file():
        address = f"sqlite:///{path.absolute()}"
        _require_tables(address)
        return address
    return _file_store(path, store)


def _file_store(path: Path, store: str) -> str:
    if not path.is_dir():
        raise ValueError(
            f"There is no folder or file {store}; give the folder of a file store (mlruns), an "
            "SQLite file, or a tracking URI."
        )
    if not any(path.glob("*/meta.yaml")):
        raise ValueError(
            f"{store} is not a file store of MLflow: no folder in it has a meta.yaml; give the "
            "folder that holds those of the experiments, usually called mlruns."
        )
    return path.absolute().as_uri()


def _require_tables(uri: str) -> None:
    """Raise an error unless the database has the tables of the installed version of MLflow."""
    try:
        import sqlalchemy
        from alembic.script import ScriptDirectory
        from sqlalchemy.exc import SQLAlchemyError
    except ImportError as error:
        raise ValueError(
            f"Databases of MLflow are read with SQLAlchemy and Alembic, which cannot be imported "
            f"({error}); install them with `pip install 'metaprior[mlflow]'`."
        ) from None
    try:
        url = sqlalchemy.engine.make_url(uri)
        if url.get_backend_name() == "sqlite" and not Path(url.database or "").is_file():
            raise ValueError(
                f"There is no database file {url.database}; check the path (three slashes before "
                "one that starts here, four before one that starts at the root)."
            )
        engine = sqlalchemy.create_engine(url)
        try:
            with engine.connect() as connection:
                tables = set(sqlalchemy.inspect(connection).get_table_names())
                if not {"experiments", "runs", "alembic_version"} <= tables:
                    raise ValueError(
                        f"{called(uri)} holds no MLflow runs; check that it is the right database."
                    )
                statement = sqlalchemy.text("SELECT version_num FROM alembic_version")
                written = connection.execute(statement).scalar()
        finally:
            engine.dispose()
    except ImportError as error:
        raise ValueError(
            f"The driver of {called(uri)} is not installed ({without_secrets(str(error), uri)}); "
            "install it with pip."
        ) from None
    except SQLAlchemyError as error:
        raise ValueError(
            f"{called(uri)} cannot be read ({_reason(error, uri)}); check that it is a database, "
            "there and running."
        ) from None
    scripts = Path(str(mlflow.__file__)).parent / "store" / "db_migrations"
    if written != ScriptDirectory(str(scripts)).get_current_head():
        raise ValueError(
            f"{called(uri)} was written by another version of MLflow than the installed "
            f"{mlflow.__version__}; install that version, or upgrade a copy with "
            "`mlflow db upgrade`."
        )


def _reason(error: BaseException, uri: str) -> str:
    """What went wrong in a few words, without what may be secret in the address."""
    text = str(getattr(error, "orig", None) or error)
    for start in _IN_SHORT:  # the rest is the address, several times
        place = text.find(start)
        if place >= 0:
            text = text[place:].rstrip(")\"'")
            break
    return cut(without_secrets(text, uri), _MOST_LETTERS).rstrip(".")


@contextmanager
def _settings(wanted: dict[str, str]) -> Iterator[None]:
    """Settings of MLflow, where the user has not set other ones."""
    added = [name for name in wanted if name not in os.environ]
    os.environ.update({name: wanted[name] for name in added})
    try:
        yield
    finally:
        for name in added:
            os.environ.pop(name, None)


@contextmanager
def _silent() -> Iterator[None]:
    """MLflow's log goes to standard error, where only our own sentences belong."""
    loggers = [logging.getLogger(name) for name in ("mlflow", "alembic")]
    before = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        for logger, level in zip(loggers, before, strict=True):
            logger.setLevel(level)
