"""Methods by name: the one place where a name in a file or on a command line becomes a class.

The library's own methods are imported on first use. Other packages add theirs with `register`, or
by an entry point of the group `metaprior.methods`, which is how a prior learned by such a method
is loaded in a process that has not imported it. A file never names a module to import.
"""

from importlib import import_module
from importlib.metadata import entry_points
from typing import TypeVar

from metaprior.methods._method import AbstractMethod
from metaprior.words import shortened

ENTRY_POINTS = "metaprior.methods"

OWN_METHODS = {
    "ABLR": "_ablr",
    "AveragedGP": "_averaged_gp",
    "Ensemble": "_ensemble",
    "FPacohBNN": "_fpacoh_bnn",
    "FPacohMap": "_fpacoh_map",
    "FPacohVI": "_fpacoh_vi",
    "FittedGP": "_fitted_gp",
    "FixedGP": "_fixed_gp",
    "Guarded": "_guarded",
    "LearnedGP": "_learned_gp",
    "NeuralProcess": "_neural_process",
    "PacohMap": "_pacoh_map",
    "RankWeightedGP": "_rank_weighted_gp",
    "SelfStandardisedGP": "_fixed_gp",
    "Weighed": "_weighed",
}

_registered: dict[str, type[AbstractMethod]] = {}

Method = TypeVar("Method", bound=type[AbstractMethod])


class UnknownMethodError(ValueError):
    """No method of that name is known in this process; the message ends another sentence."""


def register(method: Method) -> Method:
    """Make priors learned by `method`, a class of your own, loadable; usable as a decorator.

    Files refer to it by its class name, so that must not be the name of another method.
    """
    if not (isinstance(method, type) and issubclass(method, AbstractMethod)):
        raise TypeError(
            f"`register` received {shortened(method)}; give a class that derives from "
            "`metaprior.methods.AbstractMethod`."
        )
    name = method.__name__
    known = _registered.get(name)
    # A reloaded module defines its classes again: the latest definition counts.
    is_other = known is not None and known.__module__ != method.__module__
    if name in OWN_METHODS or is_other:
        raise ValueError(
            f"There is already a method called {name!r}; rename the class, since files refer to "
            "methods by class name."
        )
    _registered[name] = method
    return method


def own_method(name: str) -> type[AbstractMethod]:
    """The library's own method of that name."""
    return getattr(import_module(f"metaprior.methods.{OWN_METHODS[name]}"), name)


def method_class(name: str) -> type[AbstractMethod]:
    """The method that files call `name`; `UnknownMethodError` if nothing here is called that."""
    if name in OWN_METHODS:
        return own_method(name)
    if name not in _registered:
        for entry_point in entry_points(group=ENTRY_POINTS, name=name):
            try:
                register(entry_point.load())
            except (ImportError, AttributeError) as error:
                raise UnknownMethodError(
                    f"the entry point {entry_point.value!r} of the method {name!r} cannot be "
                    f"loaded ({error}); repair or reinstall the package that declares it"
                ) from error
    if name not in _registered:
        raise UnknownMethodError(
            f"there is no method called {name!r} in this process; if it is one of your own, first "
            "import the module that calls `metaprior.methods.register` on it"
        )
    return _registered[name]


def known_methods() -> dict[str, type[AbstractMethod]]:
    """The library's own methods, under the names by which files refer to them."""
    return {name: own_method(name) for name in OWN_METHODS}
