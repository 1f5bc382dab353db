"""A node of a generation strategy: trials from learned priors, from the very first on."""

from collections.abc import Mapping
from typing import Any

from ax.adapter.torch import TorchAdapter
from ax.adapter.transforms.base import Transform
from ax.adapter.transforms.choice_encode import ChoiceToNumericChoice
from ax.adapter.transforms.derelativize import Derelativize
from ax.adapter.transforms.log import Log
from ax.adapter.transforms.remove_fixed import RemoveFixed
from ax.core.base_trial import BaseTrial
from ax.core.data import Data
from ax.core.experiment import Experiment
from ax.core.generator_run import GeneratorRun
from ax.core.observation import ObservationFeatures
from ax.core.optimization_config import MultiObjectiveOptimizationConfig, OptimizationConfig
from ax.core.trial_status import TrialStatus
from ax.core.types import TParameterization
from ax.generation_strategy.external_generation_node import ExternalGenerationNode
from ax.generators.torch.botorch_modular.generator import BoTorchGenerator
from ax.generators.torch.botorch_modular.surrogate import SurrogateSpec
from ax.generators.torch.botorch_modular.utils import ModelConfig
from botorch.models.transforms import Standardize

from metaprior.adapters.ax._columns import AxColumns
from metaprior.adapters.ax._first import first_point
from metaprior.adapters.ax._points import sobol_points
from metaprior.adapters.ax._priors import Metrics
from metaprior.adapters.ax._volume import with_thresholds
from metaprior.adapters.botorch import LearnedModel
from metaprior.belief import Prior
from metaprior.data import Features

# Numbers as they are or as their logarithms: no metric is standardised, which would destroy what
# a prior knows of its scale.
TRANSFORMS: list[type[Transform]] = [RemoveFixed, ChoiceToNumericChoice, Log, Derelativize]


class LearnedPriorNode(ExternalGenerationNode):
    """Proposes trials by learned priors: before the first result by the priors alone, then by
    Ax's own BoTorch generator (qLogNEI; qLogNEHVI for several objectives) with learned models.

    A metric without a prior, which only constrains the outcome, is modelled from the run.

    - `priors`: by the name of the metric, or by `OBJECTIVE`.
    - `features`: features of the task: see `metaprior.Prior.for_task`.
    - `seed`: of what is proposed before the first result.
    """

    def __init__(
        self,
        name: str,
        priors: Mapping[str, Prior],
        features: Features | None = None,
        seed: int = 0,
    ):
        super().__init__(name=name)
        self.priors = dict(priors)
        self.features = features
        self.seed = seed
        self._metrics: Metrics | None = None
        self._of: Experiment | None = None
        self._adapter: TorchAdapter | None = None
        self._fixed: ObservationFeatures | None = None
        self._aims: OptimizationConfig | None = None

    def update_generator_state(self, experiment: Experiment, data: Data) -> None:
        """Check the experiment against the priors, and condition them on its results."""
        self._of, self._metrics = experiment, Metrics(experiment, self.priors)
        self._adapter, self._aims = None, None
        if _observed(experiment, data) >= set(self._metrics.needed):
            self._adapter = TorchAdapter(
                experiment=experiment,
                data=data,
                generator=BoTorchGenerator(surrogate_spec=self._surrogate(experiment)),
                transforms=TRANSFORMS,
                # Points outside of the space are nothing that a prior knows.
                expand_model_space=False,
                fit_tracking_metrics=False,
            )
            config = experiment.optimization_config
            if isinstance(config, MultiObjectiveOptimizationConfig):
                rows = sobol_points(experiment, {}, [], self.seed)
                seen = _complete_rows(experiment)
                self._aims = with_thresholds(config, self._metrics, self._adapter, rows, seen)

    def get_next_candidate(self, pending_parameters: list[TParameterization]) -> TParameterization:
        """The next trial, given those under way."""
        assert self._of is not None and self._metrics is not None  # Ax updates the state first
        if self._adapter is None:
            fixed = {} if self._fixed is None else self._fixed.parameters
            return first_point(
                self._of, self._metrics, self.features, pending_parameters, fixed, self.seed
            )
        # Ax changes what it is given: each metric gets points of its own.
        pending = {
            signature: [ObservationFeatures(parameters=dict(each)) for each in pending_parameters]
            for signature in self._metrics.signature.values()
        }
        run = self._adapter.gen(
            n=1,
            optimization_config=self._aims,
            pending_observations=pending,
            fixed_features=self._fixed,
        )
        return run.arms[0].parameters

    @property
    def _fitted_adapter(self) -> TorchAdapter | None:
        """What `client.predict` and Ax's analyses ask."""
        return self._adapter

    def _gen(
        self,
        experiment: Experiment,
        data: Data | None = None,
        n: int | None = None,
        pending_observations: dict[str, list[ObservationFeatures]] | None = None,
        **options: Any,
    ) -> GeneratorRun:
        self._fixed = options.get("fixed_features")
        return super()._gen(experiment, data, n, pending_observations, **options)

    def _surrogate(self, experiment: Experiment) -> SurrogateSpec:
        assert self._metrics is not None
        priors, configs = self._metrics.priors, {}
        for name, signature in self._metrics.signature.items():
            if name in priors:
                config = ModelConfig(
                    botorch_model_class=LearnedModel,
                    model_options={
                        "prior": priors[name],
                        "features": self.features,
                        "coordinates": AxColumns(priors[name].space, experiment.search_space),
                    },
                    input_transform_classes=None,
                )
            else:
                config = ModelConfig(outcome_transform_classes=[Standardize])
            configs[signature] = [config]
        return SurrogateSpec(metric_to_model_configs=configs)


def _observed(experiment: Experiment, data: Data) -> set[str]:
    """The metrics with a result of a complete trial inside the search space."""
    complete = [trial.index for trial, _ in _complete(experiment)]
    rows = data.df[data.df["trial_index"].isin(complete)]
    return set(rows["metric_name"])


def _complete_rows(experiment: Experiment) -> list[TParameterization]:
    """The points of complete trials inside the search space."""
    return [row for _, row in _complete(experiment)]


def _complete(experiment: Experiment) -> list[tuple[BaseTrial, TParameterization]]:
    return [
        (trial, arm.parameters)
        for trial in experiment.trials_by_status[TrialStatus.COMPLETED]
        for arm in trial.arms
        if experiment.search_space.check_membership(arm.parameters)
    ]
