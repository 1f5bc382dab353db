"""`read_history`, `read_outputs`: from past experiments of Ax to tasks, with a line on each."""

from collections.abc import Iterable, Mapping

from ax.core.experiment import Experiment
from ax.core.parameter import FixedParameter

from metaprior.adapters.ax._saved import AxSource, experiments_of
from metaprior.adapters.ax._trials import arms_of, objectives_of, read_outputs_of, read_trials
from metaprior.adapters.histories import (
    History,
    OutputsHistory,
    check_wanted,
    chosen_names,
    history_of,
    outputs_of,
    without_settled,
)
from metaprior.data import Bounds, Outputs, Quantity, Space, Tasks, require_roles
from metaprior.words import listed


def load_tasks(
    experiments: AxSource | Iterable[AxSource],
    *,
    metric: str | None = None,
    direction: str | None = None,
    studies: Iterable[str] | str | None = None,
    match: str | None = None,
    space: Space | None = None,
    features: Iterable[str] | str = (),
    value_bounds: Bounds | None = None,
) -> Tasks:
    """Past experiments of Ax as tasks; the arguments are those of `read_history`."""
    return read_history(
        experiments,
        metric=metric,
        direction=direction,
        studies=studies,
        match=match,
        space=space,
        features=features,
        value_bounds=value_bounds,
    ).tasks


def read_history(
    experiments: AxSource | Iterable[AxSource],
    *,
    metric: str | None = None,
    direction: str | None = None,
    studies: Iterable[str] | str | None = None,
    match: str | None = None,
    space: Space | None = None,
    features: Iterable[str] | str = (),
    value_bounds: Bounds | None = None,
) -> History:
    """Past experiments of Ax as tasks, and what was used, skipped and decided.

    Arms of completed trials with finite values that broke no outcome constraint. Experiments of
    several objectives need a `metric`. The search space is taken over with its scales, integers,
    steps and choices.

    - `experiments`: files by `Client.save_to_json_file` or Ax's `save_experiment`, patterns or
      folders of such, clients, or experiments; one or several.
    - `metric`: the value; by default the objective.
    - `direction`: `"maximize"` or `"minimize"`; else that of the first experiment that is used. The
      values of experiments of the other direction are negated. Needed for a metric that is no
      objective.
    - `studies`: names of the experiments to use; all if not given. `match`: a pattern of them.
    - `space`: the dimensions; else the parameters that at least 80 % of the arms have.
    - `features`: fixed parameters of the experiments that say something of the task.
    - `value_bounds`: lowest and highest possible value.
    """
    check_wanted(space, direction)
    found, where = experiments_of(experiments)
    names = chosen_names(list(found), studies, match, where)
    chosen = {name: found[name] for name in names}
    if metric is not None:
        _require_metric(metric, direction, chosen, where)
    told = [read_trials(name, each, metric, direction) for name, each in chosen.items()]
    notes: list[str] = []
    if space is None:
        told, notes = without_settled(told, _fixed(chosen))
    history = history_of(
        told,
        where,
        space=space,
        direction=direction,
        features=features,
        value_bounds=value_bounds,
        no_feature=_no_fixed_parameter,
        quantity=_quantity(metric, chosen),
    )
    return history._replace(notes=[*notes, *history.notes])


def load_outputs(
    experiments: AxSource | Iterable[AxSource],
    *,
    outputs: Mapping[str, str],
    studies: Iterable[str] | str | None = None,
    match: str | None = None,
    space: Space | None = None,
    features: Iterable[str] | str = (),
    value_bounds: Mapping[str, Bounds] | None = None,
) -> Outputs:
    """Several metrics of past Ax experiments, for `metaprior.learn_outputs`; the arguments are
    those of `read_outputs`."""
    return read_outputs(
        experiments,
        outputs=outputs,
        studies=studies,
        match=match,
        space=space,
        features=features,
        value_bounds=value_bounds,
    ).outputs


def read_outputs(
    experiments: AxSource | Iterable[AxSource],
    *,
    outputs: Mapping[str, str],
    studies: Iterable[str] | str | None = None,
    match: str | None = None,
    space: Space | None = None,
    features: Iterable[str] | str = (),
    value_bounds: Mapping[str, Bounds] | None = None,
) -> OutputsHistory:
    """Several metrics of past Ax experiments, and what was used and skipped.

    Arms as in `read_history`, with all of the metrics; constraints that are outputs may be broken.
    An experiment that optimises one of the metrics in another direction is skipped.

    - `outputs`: what each metric is, by name: `"maximize"`, `"minimize"`, or `"constraint"` for one
      with a single absolute outcome constraint, whose values are by how much it exceeds the bound.
    - `value_bounds`: limits of the values, by name.
    - the other arguments: see `read_history`.
    """
    require_roles(outputs)
    check_wanted(space, None)
    found, where = experiments_of(experiments)
    names = chosen_names(list(found), studies, match, where)
    chosen = {name: found[name] for name in names}
    told = [read_outputs_of(name, each, outputs) for name, each in chosen.items()]
    notes: list[str] = []
    if space is None:
        told, notes = without_settled(told, _fixed(chosen))
    history = outputs_of(
        told,
        where,
        outputs=outputs,
        space=space,
        features=features,
        value_bounds=value_bounds,
        no_feature=_no_fixed_parameter,
    )
    return history._replace(notes=[*notes, *history.notes])


def _require_metric(
    metric: str, direction: str | None, chosen: dict[str, Experiment], where: str
) -> None:
    names = dict.fromkeys(
        name for each in chosen.values() for arm in arms_of(each) for name in arm.means
    )
    if metric not in names:
        known = listed(list(map(repr, names)), 12) or "none"
        raise ValueError(f"There is no metric {metric!r} in {where}; there are {known}.")
    aimed = any(metric in objectives_of(each) for each in chosen.values())
    if direction is None and not aimed:
        raise ValueError(
            f"Nothing in {where} says whether high or low values of {metric!r} are good; give a "
            "direction, maximize or minimize."
        )


def _fixed(chosen: dict[str, Experiment]) -> set[str]:
    """Parameters that are fixed in an experiment."""
    return {
        name
        for experiment in chosen.values()
        for name, parameter in experiment.search_space.parameters.items()
        if isinstance(parameter, FixedParameter)
    }


def _quantity(metric: str | None, chosen: dict[str, Experiment]) -> Quantity | None:
    """What the value is called, if all experiments call it the same."""
    names = {metric} if metric else {name for e in chosen.values() for name in objectives_of(e)}
    return Quantity(*names) if len(names) == 1 else None


def _no_fixed_parameter(name: str, others: str) -> str:
    return (
        f"No experiment has a fixed parameter {name!r}; name one that the experiments have "
        f"({others})."
    )
