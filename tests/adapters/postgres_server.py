"""A PostgreSQL server of one's own, for a while; its files are in a temporary folder.

From the shell, `python tests/adapters/postgres_server.py COMMAND ...` starts a server, runs the
command with the server's URL as its last argument, and stops the server.
"""

import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

USER = "metaprior"
MISSING = "PostgreSQL is not installed; tools/setup_postgres.sh installs it."
# Another process may take a free port before the server does.
_ATTEMPTS = 5


class Server(NamedTuple):
    """A server that runs on this machine, with the folder of its files."""

    folder: Path
    port: int
    password: str

    def url(self, database: str = "postgres") -> str:
        """The address of a database, as Optuna takes it."""
        return f"postgresql+psycopg://{USER}:{self.password}@127.0.0.1:{self.port}/{database}"

    def start(self) -> None:
        """Start again, with what the databases held."""
        # What is lost with the machine is lost: there is no need to wait for the disk.
        settings = {
            "port": self.port,
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": "",
            "fsync": "off",
        }
        options = " ".join(f"-c {name}={value}" for name, value in settings.items())
        _run(self.folder, "pg_ctl", "-D", "data", "start", "-w", "-l", "log", "-o", options)

    def stop(self) -> None:
        """Stop at once, as if the machine had failed."""
        _run(self.folder, "pg_ctl", "-D", "data", "stop", "-m", "immediate")


class ServerError(RuntimeError):
    """The server did not do as it was told; the message ends with what it said itself."""


def programs() -> Path | None:
    """The folder of the newest server's programs; `None` if there is no server."""
    versions = Path("/usr/lib/postgresql").glob("*/bin/initdb")
    newest = max(versions, key=lambda path: float(path.parts[-3]), default=None)
    found = newest or shutil.which("initdb")
    return Path(found).resolve().parent if found else None


def skip_without_server() -> None:
    """End a test that needs a server where there is none; in CI there must be one."""
    import pytest

    if programs() is None:
        pytest.fail(MISSING) if os.environ.get("CI") else pytest.skip(MISSING)


@contextmanager
def temporary_server() -> Iterator[Server]:
    """A server with an empty database, which is stopped and removed at the end."""
    if programs() is None:
        raise ServerError(MISSING)
    # Not in a folder of pytest's: those are closed to the user that the server runs as.
    with tempfile.TemporaryDirectory(prefix="metaprior-postgres-") as name:
        folder, password = Path(name), secrets.token_hex(16)
        _initialise(folder, password)
        server = _started(folder, password)
        try:
            yield server
        finally:
            with suppress(ServerError):  # it has stopped already
                server.stop()


def _initialise(folder: Path, password: str) -> None:
    secret = folder / "password"
    secret.touch(mode=0o600)
    secret.write_text(password)
    if os.geteuid() == 0:
        for path in (folder, secret):
            shutil.chown(path, _account())
    options = ["--no-sync", "--encoding=UTF8", "--locale=C", "--auth=scram-sha-256"]
    _run(folder, "initdb", "-D", "data", "-U", USER, f"--pwfile={secret}", *options)
    secret.unlink()


def _started(folder: Path, password: str) -> Server:
    for attempt in range(1, _ATTEMPTS + 1):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            server = Server(folder, probe.getsockname()[1], password)
        try:
            server.start()
            break
        except ServerError:
            if attempt == _ATTEMPTS:
                raise
    return server


def _run(folder: Path, program: str, *arguments: str) -> None:
    """Run a program of the server, in its folder; as another user if this one is root, which
    PostgreSQL refuses."""
    bin = programs()
    assert bin is not None
    command = [str(bin / program), *arguments]
    if os.geteuid() == 0:
        command = ["runuser", "-u", _account(), "--", *command]
    # To a file: a server that goes on would keep a pipe open.
    with tempfile.TemporaryFile("w+") as said:
        done = subprocess.run(
            command, cwd=folder, stdin=subprocess.DEVNULL, stdout=said, stderr=said, timeout=120
        )
        said.seek(0)
        if done.returncode:
            log = folder / "log"
            more = log.read_text(errors="replace") if log.exists() else ""
            raise ServerError(f"{program} failed: {said.read()}{more}"[-2000:])


def _account() -> str:
    """An unprivileged user for the server."""
    for name in ("postgres", "nobody"):
        with suppress(KeyError):
            return pwd.getpwnam(name).pw_name
    raise ServerError("There is no user 'postgres' to run PostgreSQL as; run this as yourself.")


def main() -> int:
    # As after Ctrl-C, the server is stopped on the way out.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        with temporary_server() as server:
            return subprocess.run([*sys.argv[1:], server.url()]).returncode
    except ServerError as error:
        print(error, file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
