"""No part of an address that may be a password is ever shown."""

import traceback

import pytest
from typer.testing import CliRunner

from metaprior.adapters._address import shown_address, without_secrets
from metaprior.adapters.optuna import read_history
from metaprior.adapters.optuna._relearning import opened
from metaprior.cli._app import app

SECRETS = [
    "postgresql+psycopg://me:s3cr3t@127.0.0.1:1/db",
    "postgresql+psycopg://me@127.0.0.1:1/db?password=s3cr3t",
    "postgresql+psycopg://me@127.0.0.1:1/db?sslpassword=s3cr3t&sslmode=prefer",
    "postgresql+psycopg:///db?host=127.0.0.1&port=1&user=me&password=s3cr3t",
    "postgresql+psycopg://me:s3cr3t%40x@127.0.0.1:1/db",
    "postgresql+psycopg://me:x@s3cr3t@127.0.0.1:1/db",
    "postgresql+psycopg://me:x?s3cr3t@127.0.0.1:1/db",
    "postgresql+psycopg://me:x/s3cr3t@127.0.0.1:1/db",
    "postgresql+psycopg://me:s3cr3t@127.0.0.1:port/db",
    "mysql+none://me:s3cr3t@127.0.0.1/db",
    "postgresql+psycopg://me:s3cr3t?x=1@127.0.0.1:1/db",
    "postgresql+psycopg://me:x/s3cr3t@y@127.0.0.1:1/db",
    "postgresql+psycopg:///db?host=me:s3cr3t@127.0.0.1&port=1",
    "postgresql+psycopg://me@127.0.0.1:1/db?password=x&s3cr3t",
    "postgresql+psycopg:/me:s3cr3t@127.0.0.1:1/db",
    "sqlite:///past.db;password=s3cr3t",
    "me:s3cr3t",
    "journal:past.log?password=s3cr3t",
    "sqlite:///past.db?key=s3cr3t",
]


@pytest.mark.parametrize("address", SECRETS)
def test_read_history_hides_secrets_in_every_part_of_an_address(address, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert "s3cr3t" not in shown_address(address)
    with pytest.raises(ValueError) as caught:
        read_history(address)
    assert "s3cr3t" not in str(caught.value) and "s3cr" not in str(caught.value)
    for source in (address, f"optuna:{address}"):
        done = CliRunner().invoke(app, ["learn", source, "--out", str(tmp_path / "prior")])
        assert done.exit_code == 2 and done.stderr.startswith("Error: ")
        if "://" in address:
            assert "s3cr3t" not in done.output


@pytest.mark.parametrize("address", SECRETS)
def test_status_and_samplers_hide_secrets_in_every_part_of_an_address(
    address, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    for source in (address, f"optuna:{address}"):
        done = CliRunner().invoke(app, ["status", source, "--name", "ovens"])
        assert done.exit_code == 2 and done.stderr.startswith("Error: ")
        assert "s3cr3t" not in done.output
    if address.startswith(("journal", "sqlite")):  # which are created
        return
    with pytest.raises(ValueError) as caught:
        opened(address)
    shown = "".join(traceback.format_exception(caught.value))
    assert "s3cr" not in shown.replace(f'"{address}"', "")
    assert str(caught.value).endswith(".") and "\n" not in str(caught.value)


def test_samplers_say_how_to_write_an_at_in_a_password():
    address = "@".join(["postgresql://me:hun", "ter" + "2", "h/db"])
    with pytest.raises(ValueError, match=r"me:\*\*\*@h/db has an @ in its .*; write %40") as caught:
        opened(address)
    assert "ter2" not in "".join(traceback.format_exception(caught.value))


def test_opened_takes_braces_in_an_address(tmp_path):
    storage = opened(f"sqlite:///{tmp_path}/past{{1}}.db")
    assert (tmp_path / "past{1}.db").is_file()
    storage.remove_session()


def test_read_history_says_how_to_write_an_at_in_a_password():
    with pytest.raises(ValueError, match=r"me:\*\*\*@h/db has an @ in its .*; write %40 for it"):
        read_history("postgresql://me:a@b@h/db")


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("sqlite:///past.db", "sqlite:///past.db"),
        ("journal:runs/past.log", "journal:runs/past.log"),
        ("https://h:5000/mlflow", "https://h:5000/mlflow"),
        ("postgresql://me:a@h:port/db", "postgresql://me:***@h:port/db"),
        ("https://token@h:5000/mlflow", "https://***@h:5000/mlflow"),
        ("postgresql+psycopg://me@[::1]:1/db", "postgresql+psycopg://me@[::1]:1/db"),
        ("sqlite:////home/me@work/past 1.db", "sqlite:////home/me@work/past 1.db"),
        (r"sqlite:///C:\runs\past.db", r"sqlite:///C:\runs\past.db"),
        ("postgresql://me:a@h:1/db?sslmode=require", "postgresql://me:***@h:1/db?sslmode=require"),
        ("sqlite:///file:past.db?mode=ro&uri=true", "sqlite:///file:past.db?mode=ro&uri=true"),
    ],
)
def test_shown_address_keeps_what_is_no_secret(address, shown):
    assert shown_address(address) == shown


PASSWORDS = [
    *("s3cr3t", "%40s3cr3t", "a b s3cr3t", "a;s3cr3t", "//s3cr3t", "a//s3cr3t//b"),
    *(
        f"{start}{mark}{end}"
        for mark in "?@/#&:="
        for start, end in (("s3cr3t", "x=1"), ("x=1", "s3cr3t"))
    ),
]
PLACES = [
    *("postgresql://me:{}@h/db", "postgresql://me:{}@h:5432/db?sslmode=require"),
    *("postgresql://:{}@h/db", "mysql+pymysql://me:{}@[::1]/db", "https://me:{}@h/mlflow"),
    *("postgresql:///db?host=h&password={}", "postgresql:///db?host=me:{}@h"),
    *("postgresql:///db?user=me:{}", "postgresql:///db?host=h&sslpassword={}&mode=rw"),
    *("postgresql:/me:{}@h/db", "postgresql:me:{}@h/db", "postgresql://h/db?PASSWORD={}"),
    *("postgresql://h/db?options=-c%20password={}", "postgresql://h/db;password={}"),
    *("postgresql://me@h/db?password={}", "mssql+pyodbc:///?odbc_connect=DRIVER;PWD={}"),
]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("password", PASSWORDS)
def test_shown_address_hides_passwords_of_any_marks(place, password):
    address = place.format(password)
    assert "s3cr3t" not in shown_address(address)
    assert "s3cr3t" not in without_secrets(f"cannot reach {address} as {password!r}", address)


def test_without_secrets_leaves_words_in_which_a_short_secret_occurs():
    address = "postgresql://me:an@h/db"
    assert without_secrets("an error: cannot log in with 'an'", address) == (
        "*** error: cannot log in with '***'"
    )
