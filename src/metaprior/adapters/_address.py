"""Addresses of storages as they may be shown: passwords may stand in any part of one.

Shown is what is surely harmless, in its place: a scheme, a user, a host with a port, a plain path,
and known settings of the query with plain values. Everything else is hidden.
"""

import re
from typing import NamedTuple
from urllib.parse import unquote, unquote_plus

HIDDEN = "***"
# Settings of a query that may be shown, if their value is plain; any other one may be a secret.
_HARMLESS = {
    *("host", "port", "user", "dbname", "database", "sslmode", "connect_timeout", "charset"),
    *("uri", "mode", "timeout", "application_name", "unix_socket", "target_session_attrs"),
}
# Settings whose names may be shown, and whose values may not.
_SECRET = {
    *("password", "passwd", "sslpassword", "sslkey", "sslcert", "sslrootcert", "passfile"),
    *("options", "key", "odbc_connect", "service"),
}
_PLAIN = re.compile(r"[\w./,+~-]*(:\d+)?")
_HOST = r"([\w.-]+|\[[0-9A-Fa-f:.]+\])?"
_PLACE, _PLACE_BEHIND_LOGIN = re.compile(rf"{_HOST}(:\d+)?"), re.compile(rf"{_HOST}(:\w*)?")
_USER = re.compile(r"[\w.+%~-]*")
_PATH = re.compile(r"(/[^@:;?#&=]*)?")
# Addresses of files: what is behind the colon is a path, of a drive perhaps.
_FILE = re.compile(r"(sqlite(?:\+\w+)?:///|journal:|file:(?://)?(?=/))([^?;]*)(.*)", re.DOTALL)
_NETWORK = re.compile(r"([A-Za-z][\w+.-]*://)(.*)", re.DOTALL)
# A server may take a token for its user.
_TOKENS = re.compile(r"https?://")
# Shorter pieces of a message are hidden as whole words only, or left alone.
_LONG = 4


class _Parts(NamedTuple):
    """An address as it may be shown, and the pieces of it that may not."""

    shown: str
    secrets: list[str]


def shown_address(address: str) -> str:
    """The address with everything hidden that may be a secret."""
    return _parts(address).shown


def without_secrets(text: str, address: str) -> str:
    """A message of a driver, with whatever of the address may be a secret hidden in it."""
    for secret in sorted(_forms(_parts(address).secrets), key=len, reverse=True):
        pattern = re.escape(secret)
        if len(secret) < _LONG:
            pattern = rf"(?<!\w){pattern}(?!\w)"
        text = re.sub(pattern, HIDDEN, text)
    return text


def require_one_at(address: str) -> None:
    """Raise an error for an `@` inside of a password, of which the rest would count as the host."""
    network = None if _FILE.fullmatch(address) else _NETWORK.fullmatch(address)
    if network is not None and network[2].partition("?")[0].count("@") > 1:
        raise ValueError(
            f"The address {shown_address(address)} has an @ in its user name or password; write "
            "%40 for it."
        )


def _parts(address: str) -> _Parts:
    file, network = _FILE.fullmatch(address), _NETWORK.fullmatch(address)
    if file is not None:
        query = _query(file[3].removeprefix("?")) if file[3].startswith("?") else _hidden(file[3])
        mark = "?" if file[3].startswith("?") else ""
        return _Parts(file[1] + file[2] + mark + query.shown, query.secrets)
    if network is not None:
        rest = _network(network[2], may_be_token=_TOKENS.match(address) is not None)
        return _Parts(network[1] + rest.shown, rest.secrets)
    return _without_slashes(address)


def _network(rest: str, *, may_be_token: bool) -> _Parts:
    """What is behind the slashes: a login, a place, a path and a query."""
    # A password may hold every mark, so that only the last @ surely is behind it.
    login, at, behind = rest.rpartition("@")
    user, colon, password = login.partition(":")
    if may_be_token and at and not colon:
        user, password, at = "", login, f"{HIDDEN}@"
    elif not at or not _USER.fullmatch(user) or (not colon and "@" in login):
        # No login, or a mark in the query alone.
        at, behind = "", rest
        user = colon = password = ""
    secrets = [password]
    start = f"{user}{colon}{HIDDEN if colon else ''}{at}"
    before, mark, told = behind.partition("?")
    cut = before.find("/") if "/" in before else len(before)
    place, path = before[:cut], before[cut:]
    shown = []
    plain = _PLACE_BEHIND_LOGIN if at else _PLACE
    for piece, harmless, hidden in ((place, plain, HIDDEN), (path, _PATH, f"/{HIDDEN}")):
        is_shown = harmless.fullmatch(piece) is not None
        shown.append(piece if is_shown else hidden)
        secrets += [] if is_shown else [piece]
    query = _query(told)
    return _Parts(start + "".join(shown) + mark + query.shown, secrets + query.secrets)


def _query(query: str) -> _Parts:
    """The settings behind the question mark."""
    shown, secrets = [], []
    for pair in query.split("&") if query else ():
        name, equals, value = pair.partition("=")
        if equals and name.lower() in _HARMLESS and _PLAIN.fullmatch(value):
            shown.append(pair)
            continue
        # What looks like the name of a setting may be what comes behind an & in a password.
        is_known = equals and name.lower() in _HARMLESS | _SECRET
        shown.append(f"{name}={HIDDEN}" if is_known else HIDDEN)
        secrets += [value] if is_known else [name, value]
    return _Parts("&".join(shown), secrets)


def _without_slashes(address: str) -> _Parts:
    """A path, or what is no address at all, and perhaps a user and a password."""
    path, mark, told = address.partition("?")
    scheme, colon, behind = path.partition(":")
    query = _query(told)
    is_drive = len(scheme) == 1 and behind[:1] in ("/", "\\")
    if (not colon and "@" not in path) or is_drive:
        return _Parts(path + mark + query.shown, query.secrets)
    start = f"{scheme}:" if colon and _PLAIN.fullmatch(scheme) else ""
    return _Parts(start + HIDDEN, [behind if start else path, told])


def _hidden(text: str) -> _Parts:
    return _Parts(HIDDEN if text else "", [text])


def _forms(secrets: list[str]) -> set[str]:
    """The secrets as a driver may say them: decoded, and in pieces if it took them for others."""
    pieces = {piece for each in secrets for piece in re.split(r"[/?#@:;&=\s'\"]+", each)}
    found = {*secrets, *(piece for piece in pieces if len(piece) >= _LONG)}
    return {form for each in found for form in (each, unquote(each), unquote_plus(each)) if form}
