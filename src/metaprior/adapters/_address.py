"""Addresses of storages as they may be shown: passwords may stand in any part of one."""

import re
from urllib.parse import unquote, unquote_plus

HIDDEN = "***"
# What is said after the question mark and may be shown; everything else may be a secret.
_HARMLESS = {
    *("host", "port", "user", "dbname", "database", "sslmode", "connect_timeout", "charset"),
    *("uri", "mode", "timeout", "application_name", "unix_socket", "target_session_attrs"),
}
# Shorter pieces of a message are hidden as whole words only.
_LONG = 4


def shown_address(address: str) -> str:
    """The address with everything hidden that may be a secret."""
    start, query = _halves(address)
    scheme, slashes, rest = start.partition("//")
    login, at, place = rest.rpartition("@")
    if slashes and at:
        user, colon, _ = login.partition(":")
        rest = f"{user}{colon}{HIDDEN if colon else ''}@{place}"
    elif not slashes and ":" in start and "/" not in start and "\\" not in start:
        # Not an address, and perhaps a user and a password.
        scheme, rest = start.partition(":")[0] + ":" + HIDDEN, ""
    shown = [
        f"{name}={value if name.lower() in _HARMLESS else HIDDEN}" for name, value in _pairs(query)
    ]
    return scheme + slashes + rest + ("?" + "&".join(shown) if query else "")


def without_secrets(text: str, address: str) -> str:
    """A message of a driver, with whatever of the address may be a secret hidden in it."""
    for secret in sorted(_secrets(address), key=len, reverse=True):
        pattern = re.escape(secret)
        if len(secret) < _LONG:
            pattern = rf"(?<!\w){pattern}(?!\w)"
        text = re.sub(pattern, HIDDEN, text)
    return text


def require_one_at(address: str) -> None:
    """Raise an error for an `@` inside of a password, of which the rest would count as the host."""
    start, _ = _halves(address)
    place = start.partition("//")[2].partition("/")[0]
    if place.count("@") > 1:
        raise ValueError(
            f"The address {shown_address(address)} has an @ in its user name or password; write "
            "%40 for it."
        )


def _secrets(address: str) -> set[str]:
    start, query = _halves(address)
    login, _, _ = start.partition("//")[2].rpartition("@")
    found = {login.partition(":")[2]}
    found |= {value for name, value in _pairs(query) if name.lower() not in _HARMLESS}
    return {form for each in found for form in (each, unquote(each), unquote_plus(each)) if form}


def _halves(address: str) -> tuple[str, str]:
    """What is before the question mark of the query, and what is after it."""
    # A question mark in a password comes before the last @ of the address.
    login, at, rest = address.rpartition("@")
    if "//" in login and "=" not in login.partition("?")[2]:
        place, _, query = rest.partition("?")
        return login + at + place, query
    start, _, query = address.partition("?")
    return start, query


def _pairs(query: str) -> list[tuple[str, str]]:
    return [
        (name, value)
        for name, _, value in (pair.partition("=") for pair in query.split("&"))
        if query
    ]
