"""Past studies from Optuna storages: what is used, what is not, and what is said about it."""

import math
import os
import sqlite3
import subprocess
import sys
import warnings
from contextlib import closing
from typing import Any

import numpy as np
import optuna
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.storages import JournalStorage, RDBStorage
from optuna.storages.journal import JournalFileBackend
from optuna.trial import TrialState, create_trial

import metaprior as mp
from metaprior.adapters.optuna import StudyUse, load_tasks, read_history
from metaprior.adapters.optuna._trials import _fault

optuna.logging.set_verbosity(optuna.logging.ERROR)

X = FloatDistribution(0, 1)
LR = FloatDistribution(1e-4, 1.0, log=True)
N = IntDistribution(1, 9)
ACT = CategoricalDistribution([None, "relu", "tanh"])


def trial(value=None, state=TrialState.COMPLETE, **params: Any):
    """A trial with parameters given as `name=(value, distribution)`."""
    return create_trial(
        state=state,
        value=value,
        params={name: value for name, (value, _) in params.items()},
        distributions={name: distribution for name, (_, distribution) in params.items()},
    )


def add_study(storage, name, trials, direction: Any = "minimize"):
    study = optuna.create_study(study_name=name, storage=storage, direction=direction)
    study.add_trials(trials)
    return study


def add_plain(storage, *names, direction="minimize"):
    """Studies of three trials over `x`, whose values are 1, 2 and 3."""
    for name in names:
        trials = [trial(float(i), x=(i / 4, X)) for i in (1, 2, 3)]
        add_study(storage, name, trials, direction)


@pytest.fixture
def memory():
    return optuna.storages.InMemoryStorage()


def storages(folder):
    """The ways to say where a storage is, each with an object to write into it."""
    url, path = f"sqlite:///{folder}/past.db", f"{folder}/past.log"
    database, journal = RDBStorage(url), JournalStorage(JournalFileBackend(path))
    memory = optuna.storages.InMemoryStorage()
    return {
        "SQLite by URL": (database, url),
        "SQLite by object": (database, database),
        "journal by path": (journal, f"journal:{path}"),
        "journal by object": (journal, journal),
        "in memory": (memory, memory),
    }


@pytest.mark.parametrize(
    "kind",
    ["SQLite by URL", "SQLite by object", "journal by path", "journal by object", "in memory"],
)
def test_read_history_gives_the_same_tasks_from_every_storage(tmp_path, kind):
    writable, named = storages(tmp_path)[kind]
    for i in range(3):
        trials = [
            trial(10.0 * i + k, lr=(10.0**-k, LR), n=(k + 1, N), act=(ACT.choices[k % 3], ACT))
            for k in range(4)
        ]
        add_study(writable, f"study {i}", trials)
    history = read_history(named)
    assert history.names == ["study 0", "study 1", "study 2"]
    assert history.tasks.direction == "minimize" and history.notes == []
    assert history.tasks.space == mp.Space(
        lr=mp.Real(1e-4, 1, log=True),
        n=mp.Integer(1, 9),
        act=mp.Categorical(["None", "relu", "tanh"]),
    )
    points, values = history.tasks.run(2)
    np.testing.assert_array_equal(values, [20.0, 21.0, 22.0, 23.0])
    assert [point["n"] for point in points] == [1, 2, 3, 4]
    assert [point["act"] for point in points] == ["None", "relu", "tanh", "None"]
    np.testing.assert_allclose([point["lr"] for point in points], [1, 0.1, 0.01, 0.001])
    assert history.studies == [StudyUse(f"study {i}", True, 4, {}, "") for i in range(3)]


def test_read_history_names_the_value_as_the_studies_do(memory):
    add_plain(memory, "a", "b", "c")
    assert read_history(memory).tasks.quantity == mp.data.Quantity()
    for name in ("a", "c"):
        study = optuna.load_study(study_name=name, storage=memory)
        with warnings.catch_warnings():  # Optuna calls the method experimental
            warnings.simplefilter("ignore")
            study.set_metric_names(["yield [%]"])
    assert read_history(memory).tasks.quantity == mp.data.Quantity("yield [%]", "%")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        optuna.load_study(study_name="b", storage=memory).set_metric_names(["loss"])
    history = read_history(memory)
    assert history.tasks.quantity == mp.data.Quantity()
    assert any("call their value 'yield [%]', 'loss'" in note for note in history.notes)


def test_read_history_does_not_alter_the_files(tmp_path):
    for writable, named in storages(tmp_path).values():
        if isinstance(named, str):
            add_plain(writable, "one", "two")
            before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
            load_tasks(named)
            assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_read_history_counts_unusable_trials(memory):
    study = add_study(memory, "mixed", [trial(1.0, x=(0.1, X)), trial(math.inf, x=(0.2, X))])
    study.add_trial(trial(-math.inf, x=(0.3, X)))
    for state in (TrialState.FAIL, TrialState.FAIL, TrialState.PRUNED, TrialState.WAITING):
        study.add_trial(trial(state=state, x=(0.4, X)))
    study.ask({"x": X})  # takes the waiting one, which runs from now on
    for constraint, value in ((0.0, 5.0), (-1.0, 6.0), (1e-9, 7.0)):
        running = study.ask({"x": X})
        running.set_constraint("first", -1.0)
        running.set_constraint("second", constraint)
        study.tell(running, value)
    study.enqueue_trial({"x": 0.5})
    history = read_history(memory)
    assert history.studies == [
        StudyUse(
            "mixed",
            True,
            3,
            {
                "not finite": 2,
                "failed": 2,
                "pruned": 1,
                "running": 1,
                "infeasible": 1,
                "waiting": 1,
            },
            "",
        )
    ]
    np.testing.assert_array_equal(history.tasks.run(0)[1], [1.0, 5.0, 6.0])


def test_fault_of_a_trial_names_a_value_that_is_not_finite():
    frozen = trial(1.0, x=(0.1, X))
    assert _fault(frozen) == ""
    frozen.values = [math.nan]
    assert _fault(frozen) == "not finite"


def test_read_history_skips_infinite_parameters(memory):
    study = add_study(memory, "s", [trial(1.0, x=(0.1, X)), trial(2.0, x=(0.2, X))])
    study.enqueue_trial({"x": math.inf})
    with pytest.warns(UserWarning, match="out of range"):
        study.tell(study.ask({"x": X}), 3.0)
    assert read_history(memory).studies[0].left_out == {"not finite": 1}


def test_read_history_widens_the_space_for_enqueued_values(memory):
    study = add_study(memory, "s", [trial(1.0, x=(0.1, X)), trial(2.0, x=(0.2, X))])
    study.enqueue_trial({"x": 5.0})
    with pytest.warns(UserWarning, match="out of range"):
        study.tell(study.ask({"x": X}), 3.0)
    assert load_tasks(memory).space == mp.Space(x=mp.Real(0, 5))


def test_read_history_gives_a_reason_for_skipped_studies(memory):
    add_plain(memory, "good", "fine", "also")
    optuna.create_study(storage=memory, study_name="two goals", directions=["minimize", "minimize"])
    add_study(memory, "short", [trial(1.0, x=(0.1, X))])
    add_study(memory, "empty", [])
    add_study(memory, "other", [trial(1.0, z=(0.1, X)), trial(2.0, z=(0.4, X))])
    add_plain(memory, "metaprior:ledger")
    history = read_history(memory)
    assert history.names == ["good", "fine", "also"] and len(history.tasks) == 3
    few = "fewer than 2 complete trials with finite values"
    # 'z' is in 2 of 11 trials, hence no dimension.
    assert [use for use in history.studies if not use.used] == [
        StudyUse("two goals", False, 0, {}, "several objectives"),
        StudyUse("short", False, 1, {}, few),
        StudyUse("empty", False, 0, {}, few),
        StudyUse(
            "other",
            False,
            0,
            {"without parameters": 2},
            "none of the parameters of the other studies",
        ),
    ]
    assert history.tasks.space.names == ("x",) and history.notes == []


def test_read_history_chooses_studies_by_name_and_pattern(memory):
    add_plain(memory, "svm-1", "svm-2", "tree-1", "SVM-3")
    assert read_history(memory, match="svm-*").names == ["svm-1", "svm-2"]
    assert read_history(memory, match="*-1").names == ["svm-1", "tree-1"]
    assert read_history(memory, studies=["tree-1", "svm-1"]).names == ["svm-1", "tree-1"]
    assert read_history(memory, studies="SVM-3").names == ["SVM-3"]
    assert read_history(memory, studies=["svm-2", "tree-1"], match="t*").names == ["tree-1"]


def test_read_history_negates_values_of_the_other_direction(memory):
    add_plain(memory, "down", direction="minimize")
    add_plain(memory, "up", "higher", direction="maximize")
    history = read_history(memory)
    assert history.tasks.direction == "minimize"
    np.testing.assert_array_equal(history.tasks.run(0)[1], [1, 2, 3])
    np.testing.assert_array_equal(history.tasks.run(1)[1], [-1, -2, -3])
    # Better is larger inside, whatever the study did.
    np.testing.assert_array_equal(history.tasks.y[:, :3], [[-1, -2, -3], [1, 2, 3], [1, 2, 3]])
    assert history.notes == [
        "2 studies are maximized ('up', 'higher'): values are negated, to be minimized."
    ]
    turned = read_history(memory, direction="maximize")
    assert turned.tasks.direction == "maximize"
    np.testing.assert_array_equal(turned.tasks.y, history.tasks.y)
    assert turned.notes == ["One study is minimized ('down'): values are negated, to be maximized."]


def test_read_history_joins_bounds_and_leaves_out_fixed_parameters(memory):
    fixed, wide = IntDistribution(7, 7), FloatDistribution(-2, 0.5)
    add_study(memory, "a", [trial(1.0, x=(v, X), k=(7, fixed)) for v in (0.1, 0.9)])
    add_study(memory, "b", [trial(1.0, x=(v, wide), k=(7, IntDistribution(1, 9))) for v in (-2, 0)])
    history = read_history(memory)
    assert history.tasks.space == mp.Space(x=mp.Real(-2, 1))
    assert history.notes == [
        "Only one value, and left out of the space: 'k'.",
        "The parameter 'x' has bounds that differ: all of [-2, 1] is kept.",
    ]
    np.testing.assert_allclose([p["x"] for p in history.tasks.run(1)[0]], [-2, 0], atol=1e-12)


def test_read_history_allows_bounds_to_change_within_a_study(memory):
    trials = [trial(1.0, x=(high - 0.5, FloatDistribution(0, high))) for high in (1, 2, 3)]
    add_study(memory, "growing", trials)
    assert load_tasks(memory).space == mp.Space(x=mp.Real(0, 3))


def test_read_history_fills_in_or_drops_conditional_parameters(memory):
    """Of ten trials nine have `lr` and `act`, eight `n`, seven `rare`."""
    rare = FloatDistribution(0, 1)
    for name, numbers in (("a", range(5)), ("b", range(5, 10))):
        trials = []
        for k in numbers:
            params: dict[str, Any] = {"x": (k / 10, X)}
            if k != 4:
                params |= {"lr": (10.0 ** -(k % 4), LR), "act": (ACT.choices[1 + k % 2], ACT)}
            if k < 8:
                params["n"] = (1 + k, N)
            if k < 7:
                params["rare"] = (k / 10, rare)
            trials.append(trial(float(k), **params))
        add_study(memory, name, trials)
    history = read_history(memory)
    assert history.tasks.space.names == ("x", "lr", "act", "n")
    assert history.notes == [
        "Too often missing, and left out of the space: 'rare' (in 70% of the trials).",
        "The parameter 'lr' is missing in 1 of 10 trials: taken as 0.01, the middle.",
        "The parameter 'act' is missing in 1 of 10 trials: taken as 'None', the first choice.",
        "The parameter 'n' is missing in 2 of 10 trials: taken as 5, the middle.",
    ]
    point = history.tasks.run(0)[0][4]
    assert (point["lr"], point["act"], point["n"]) == (pytest.approx(0.01), "None", 5)
    assert [point["n"] for point in history.tasks.run(1)[0]] == [6, 7, 8, 5, 5]


def test_read_history_keeps_to_a_given_space(memory):
    space = mp.Space(x=mp.Real(0, 0.6), n=mp.Integer(1, 9))
    add_study(memory, "inside", [trial(k, x=(k / 10, X), n=(k, N)) for k in (1, 2, 3)])
    add_study(memory, "partly", [trial(k, x=(k / 10, X), n=(k, N)) for k in (5, 6, 7, 8)])
    add_study(memory, "outside", [trial(k, x=(k / 10, X), n=(k, N)) for k in (6, 7, 8)])
    add_study(memory, "no n", [trial(k, x=(k / 10, X)) for k in (1, 2, 3)])
    add_study(memory, "neither", [trial(k, z=(k / 10, X)) for k in (1, 2, 3)])
    kind = CategoricalDistribution([1, 2, 3])
    add_study(memory, "kind", [trial(k, x=(k / 10, X), n=(k, kind)) for k in (1, 2, 3)])
    extra = [trial(k, x=(k / 10, X), n=(k, N), z=(0.1 * k, X)) for k in (1, 2)]
    add_study(memory, "extra", extra)
    history = read_history(memory, space=space)
    assert history.tasks.space == space
    assert history.names == ["inside", "partly", "extra"]
    assert history.notes == ["Not in the space, and left out: 'z'."]
    assert {use.name: (use.trials, use.left_out, use.reason) for use in history.studies} == {
        "inside": (3, {}, ""),
        "partly": (2, {"outside the space": 2}, ""),
        "outside": (1, {"outside the space": 2}, "fewer than 2 trials inside the space"),
        "no n": (3, {}, "'n' is missing in more than 20%"),
        "neither": (0, {"without parameters": 3}, "no parameter of the space"),
        "kind": (3, {}, "'n' is categorical, unlike in the space"),
        "extra": (2, {}, ""),
    }


def test_read_history_gives_tasks_that_can_be_learned_from(memory):
    add_plain(memory, "one", "two")
    prior = mp.learn(load_tasks(memory), method=mp.methods.FixedGP(), seed=0)
    assert prior.direction == "minimize" and prior.space.names == ("x",)


# What cannot be read, and what cannot be used.


def refuses(storage, sentence, **options):
    with pytest.raises(ValueError) as caught:
        read_history(storage, **options)
    told = str(caught.value)
    assert sentence in told and "\n" not in told and told.endswith("."), told
    assert "secret" not in told


def test_read_history_refuses_a_database_of_another_version(tmp_path):
    url = f"sqlite:///{tmp_path}/past.db"
    add_plain(RDBStorage(url), "one", "two")
    with closing(sqlite3.connect(tmp_path / "past.db")) as connection, connection:
        connection.execute("update alembic_version set version_num = 'v1.3.0.a'")
    refuses(url, "cannot be read: The runtime optuna version")


def test_read_history_skips_a_study_deleted_meanwhile(memory, monkeypatch):
    add_plain(memory, "one", "two")
    names = ["one", "gone", "two"]
    monkeypatch.setattr(optuna, "get_all_study_names", lambda storage: names)
    history = read_history(memory)
    assert history.names == ["one", "two"]
    assert history.studies[1] == StudyUse("gone", False, 0, {}, "deleted meanwhile")


def test_read_history_accepts_braces_in_an_address(tmp_path):
    """Optuna fills in what stands in braces."""
    folder = tmp_path / "{1}"
    folder.mkdir()
    add_plain(RDBStorage(f"sqlite:///{tmp_path}/past.db"), "one", "two")
    (tmp_path / "past.db").rename(folder / "past.db")
    assert len(load_tasks(f"sqlite:///{folder}/past.db")) == 2


def test_read_history_refuses_a_parameter_of_two_kinds(memory):
    add_plain(memory, "numbers")
    either = CategoricalDistribution(["a", "b"])
    add_study(memory, "words", [trial(1.0, x=(word, either)) for word in "ab"])
    refuses(
        memory,
        "The parameter 'x' is a number in trial 0 of study 'numbers' and categorical in trial 0 of "
        "study 'words'; choose studies in which it is the same.",
    )
    assert read_history(memory, studies=["words"]).tasks.space == mp.Space(
        x=mp.Categorical(["a", "b"])
    )


def test_read_history_refuses_storages_with_nothing_usable(memory):
    refuses(memory, "There are no studies in the InMemoryStorage; check that it is the right")
    add_plain(memory, "metaprior:ledger")
    refuses(memory, "There are no studies in the InMemoryStorage")
    for i in range(2):
        optuna.create_study(storage=memory, study_name=f"m{i}", directions=["minimize", "minimize"])
    refuses(memory, "from any of the 2 studies in the InMemoryStorage: several objectives (2); ")
    add_study(memory, "short", [trial(1.0, x=(0.1, X))])
    refuses(memory, "several objectives (2), fewer than 2 complete trials with finite values (1)")
    refuses(memory, "Nothing can be learned from the study in", studies=["short"])


def test_read_history_refuses_studies_without_shared_parameters(memory):
    add_plain(memory, "a")
    add_study(memory, "b", [trial(1.0, z=(0.1, X)), trial(2.0, z=(0.4, X))])
    refuses(memory, "The 2 studies share no parameter: none is present in at least 80% of their")
    still = [trial(k, x=(0.5, X)) for k in (1, 2)]
    add_study(memory, "still", still)
    refuses(memory, "No parameter of the 1 studies has two values or more", studies=["still"])


def test_read_history_names_unknown_studies(memory):
    add_plain(memory, *(f"s{i}" for i in range(5)))
    refuses(
        memory,
        "There is no study 'x' in the InMemoryStorage; it has 's0', 's1', 's2' and 2 more.",
        studies=["x"],
    )
    refuses(memory, "No study in the InMemoryStorage matches 'x*'; the names are 's0'", match="x*")
    refuses(memory, "No study is named in `studies`", studies=[])


def test_read_history_refuses_bad_arguments(memory):
    add_plain(memory, "one")
    refuses(memory, "Unknown direction 'up'", direction="up")
    with pytest.raises(TypeError, match="storage"):
        read_history(3)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        ("sqlite:///{}/none.db", "There is no database file {}/none.db; check the path"),
        ("sqlite:///file:{}/none.db?uri=true", "There is no database file {}/none.db; check"),
        ("journal:{}/none.log", "There is no journal file {}/none.log; check the path."),
        (
            "{}/none.log",
            "'{}/none.log' is not the address of an Optuna storage; give a database URL",
        ),
        ("sqlite://", "sqlite:// is a database in memory, which holds nothing yet; give the path"),
        ("sqlite:///{}/text", "sqlite:///{}/text cannot be read (file is not a database); check"),
        ("sqlite:///{}/empty", "sqlite:///{}/empty holds no Optuna studies; check that it is"),
        ("journal:{}/text", "{}/text is not a journal file of Optuna ("),
        ("journal:{}/empty", "There are no studies in journal:{}/empty; check that it is the"),
        (
            "postgresql+psycopg://me:secret@127.0.0.1:1/db",
            "postgresql+psycopg://me:***@127.0.0.1:1/db cannot be read (",
        ),
        (
            "postgresql://me:secret@host:port/db",
            "'postgresql://me:***@host:port/db' is not the address of an Optuna",
        ),
        ("mysql+none://me:secret@127.0.0.1/db", "cannot be opened (Can't load plugin: sqlalchemy"),
        ("mysql+mysqldb://me@h/db", "The driver of mysql+mysqldb://me@h/db is not installed (No"),
    ],
)
def test_read_history_names_storages_that_cannot_be_opened(tmp_path, url, sentence):
    (tmp_path / "text").write_text("not a database, " * 99 + "\n" + "nor a journal\n")
    (tmp_path / "empty").touch()
    refuses(url.format(tmp_path), sentence.format(tmp_path))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["empty", "text"]
    assert (tmp_path / "empty").stat().st_size == 0


def test_require_host_names_the_extra_of_a_missing_optuna():
    done = subprocess.run(
        [
            *(sys.executable, "-c"),
            "import sys; sys.modules['optuna'] = None\n"
            "import metaprior\n"
            "try: metaprior.adapters.optuna\n"
            "except ImportError as error: print(error)",
        ],
        capture_output=True,
        text=True,
        env={**os.environ, "JAX_PLATFORMS": "cpu"},
        check=True,
    )
    assert done.stdout.startswith("This part of metaprior needs Optuna, which cannot be imported (")
    assert done.stdout.endswith("install it with `pip install 'metaprior[optuna]'`.\n")


def test_require_host_refuses_an_older_optuna(monkeypatch):
    from metaprior.adapters import require_host

    monkeypatch.setattr(optuna, "__version__", "4.9.1")
    with pytest.raises(ImportError, match="needs Optuna 5 or newer, found 4.9.1; install it with"):
        require_host("optuna", called="Optuna", extra="optuna", oldest=5)
