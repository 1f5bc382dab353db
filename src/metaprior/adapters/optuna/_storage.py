"""Opening a storage of past studies for reading: nothing is created, nothing is altered.

Optuna creates the file or the tables of a storage that does not exist. When history is read, a
missing storage is more likely a misspelt address, so it is an error here.
"""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from optuna.exceptions import StorageInternalError
from optuna.storages import BaseStorage, JournalStorage, RDBStorage
from optuna.storages.journal import JournalFileBackend

from metaprior.adapters import require_one_at, shown_address, without_secrets
from metaprior.words import cut

JOURNAL = "journal:"
# Seconds to wait for a database server; what the URL says goes first.
_PATIENCE = 10
_DRIVERS_WITH_TIMEOUT = ("psycopg", "psycopg2", "pymysql", "mysqldb")


@contextmanager
def reading(storage: str | BaseStorage) -> Iterator[BaseStorage]:
    """The storage, open inside the context; a failure is a `ValueError` of one sentence.

    - `storage`: the URL of a database, `journal:` and the path of a journal file, or any storage
      object of Optuna, which stays open.
    """
    with warnings.catch_warnings(), _in_one_sentence(storage):
        # Every trial of an old database warns that its distributions have been renamed.
        warnings.simplefilter("ignore", FutureWarning)
        if isinstance(storage, BaseStorage):
            yield storage
        elif not isinstance(storage, str):
            raise TypeError(
                f"`storage` is a {type(storage).__name__}; give the URL of an Optuna storage, such "
                "as sqlite:///past.db, or a storage object."
            )
        elif storage.startswith(JOURNAL):
            yield _journal(storage.removeprefix(JOURNAL))
        else:
            with _database(storage) as database:
                yield database


@contextmanager
def opening(address: str) -> Iterator[str]:
    """The address as Optuna takes it, to open or create a storage inside the context.

    What goes wrong is one sentence, in which nothing of the address is shown that may be a secret.
    """
    try:
        with _in_one_sentence(address):
            if address.startswith(JOURNAL):
                yield address
                return
            require_one_at(address)
            _url(address)
            yield _verbatim(address)
    except ImportError as error:
        raise ValueError(
            f"The driver of {called(address)} is not installed ({_reason(error, address)}); "
            "install it with pip."
        ) from None
    except ValueError as error:
        raise ValueError(without_secrets(str(error), address)) from None
    except Exception as error:
        problem = cut(f"{type(error).__name__}: {_reason(error, address)}", 200)
        raise ValueError(f"{called(address)} cannot be opened ({problem}); check it.") from None


@contextmanager
def damage_in_one_sentence(storage: str | BaseStorage) -> Iterator[None]:
    """What Optuna and its database raise where a record is not what they wrote, as one ValueError.

    Neither looks at what it reads: text in the place of a number, or a missing record, may be any
    exception. That a storage cannot be reached is said by `reading`.
    """
    from sqlalchemy.exc import ArgumentError, SQLAlchemyError

    try:
        yield
    except (ArgumentError, SQLAlchemyError, StorageInternalError):
        raise
    except Exception as error:
        problem = cut(f"{type(error).__name__}: {_reason(error, storage)}", 200)
        raise ValueError(
            f"{called(storage)} is damaged, or was not written by Optuna ({problem}); restore it "
            "from a copy."
        ) from None


def called(storage: str | BaseStorage) -> str:
    """What to call a storage in a sentence; passwords are hidden."""
    if not isinstance(storage, str):
        return f"the {type(storage).__name__}"
    return shown_address(storage)


def _shown_path(path: str) -> str:
    """The path of a file, without settings behind it."""
    return shown_address(f"{JOURNAL}{path}").removeprefix(JOURNAL)


def _journal(path: str) -> BaseStorage:
    if not Path(path).is_file():
        raise ValueError(f"There is no journal file {_shown_path(path)}; check the path.")
    try:
        return JournalStorage(JournalFileBackend(path))
    except Exception as error:  # Optuna does not look at what it reads
        problem = cut(f"{type(error).__name__}: {first_line(error)}", 200)
        raise ValueError(
            f"{_shown_path(path)} is not a journal file of Optuna ({problem}); check it."
        ) from None


@contextmanager
def _database(address: str) -> Iterator[BaseStorage]:
    import sqlalchemy

    require_one_at(address)
    url = _url(address)
    if url.get_backend_name() == "sqlite":
        _require_file(url)
    try:
        engine = sqlalchemy.create_engine(url, connect_args=_patience(url))
    except ImportError as error:
        raise ValueError(
            f"The driver of {called(address)} is not installed "
            f"({without_secrets(str(error), address)}); install it with pip."
        ) from None
    try:
        with damage_in_one_sentence(address), engine.connect() as connection:
            tables = sqlalchemy.inspect(connection).get_table_names()
        if "studies" not in tables:
            raise ValueError(
                f"{called(address)} holds no Optuna studies; check that it is the right database."
            )
        try:
            # Our own pool of connections, so that all of them are closed at the end.
            pool = {"pool": engine.pool}
            storage = RDBStorage(_verbatim(address), engine_kwargs=pool, skip_table_creation=True)
        except RuntimeError as error:  # tables of another version of Optuna
            problem = without_secrets(first_line(error), address)
            raise ValueError(f"{called(address)} cannot be read: {problem}.") from None
        yield storage
    finally:
        engine.dispose()


def _url(address: str) -> Any:
    from sqlalchemy.engine import make_url
    from sqlalchemy.exc import ArgumentError

    try:
        return make_url(address)
    except (ArgumentError, ValueError):  # not even an address, or a port that is no number
        raise ValueError(
            f"{shown_address(address)!r} is not the address of an Optuna storage; give a database "
            "URL such as sqlite:///past.db, or journal: and the path of a journal file."
        ) from None


def _verbatim(address: str) -> str:
    """The address with braces escaped, since Optuna formats it."""
    return address.replace("{", "{{").replace("}", "}}")


def _require_file(url: Any) -> None:
    """SQLite would create a file that does not exist."""
    name = url.database or ""
    # With ?uri=true the path is itself an address: file:past.db?mode=ro
    path = name.removeprefix("file:").split("?")[0] if name.startswith("file:") else name
    if path in ("", ":memory:"):
        raise ValueError(
            f"{url} is a database in memory, which holds nothing yet; give the path of a file, as "
            "in sqlite:///past.db."
        )
    if not Path(path).is_file():
        raise ValueError(
            f"There is no database file {_shown_path(path)}; check the path (three slashes before "
            "one that starts here, four before one that starts at the root)."
        )


def _patience(url: Any) -> dict[str, int]:
    driver = url.drivername.partition("+")[2] or {"postgresql": "psycopg2", "mysql": "mysqldb"}.get(
        url.drivername, ""
    )
    named = "connect_timeout" in url.query
    return {"connect_timeout": _PATIENCE} if driver in _DRIVERS_WITH_TIMEOUT and not named else {}


@contextmanager
def _in_one_sentence(storage: str | BaseStorage) -> Iterator[None]:
    """What Optuna and its database raise, as a ValueError of one sentence."""
    from sqlalchemy.exc import ArgumentError, SQLAlchemyError

    try:
        yield
    except ArgumentError as error:  # an unknown kind of database
        raise ValueError(
            f"{called(storage)} cannot be opened ({_reason(error, storage)}); check the start of "
            "it."
        ) from None
    except (StorageInternalError, SQLAlchemyError) as error:
        reason = _reason(error.__cause__ or error, storage)
        raise ValueError(
            f"{called(storage)} cannot be read ({reason}); check that it is there and running."
        ) from None


def _reason(error: BaseException, storage: str | BaseStorage) -> str:
    """The first line of the error, without what may be secret in the address."""
    line = first_line(error)
    return without_secrets(line, storage) if isinstance(storage, str) else line


def reason_of(error: BaseException) -> str:
    """What went wrong, in one line."""
    # For a lost database connection, Optuna's own message has no detail.
    away = isinstance(error, StorageInternalError)
    return first_line((error.__cause__ or error) if away else error)


def first_line(error: BaseException) -> str:
    """The message of a database's own driver, without the statement and the link around it."""
    lines = str(getattr(error, "orig", None) or error).strip().splitlines()
    return lines[0].strip().rstrip(".") if lines else type(error).__name__
