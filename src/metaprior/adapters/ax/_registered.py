"""What Ax must be told of: how the node is written into its JSON files and read back, priors
included, and that a learned model needs no fitting."""

from typing import Any

from ax.generators.torch.botorch_modular.utils import fit_botorch_model
from ax.storage.botorch_modular_registry import register_model
from ax.storage.json_store.registry import CORE_CLASS_DECODER_REGISTRY, CORE_ENCODER_REGISTRY

from metaprior.adapters import as_text, from_text
from metaprior.adapters.ax._node import LearnedPriorNode
from metaprior.adapters.botorch import LearnedModel


def node_to_json(node: LearnedPriorNode) -> dict[str, Any]:
    """The arguments of a node."""
    return {
        "__type": LearnedPriorNode.__name__,
        "name": node.name,
        "priors": {name: as_text(prior) for name, prior in node.priors.items()},
        "features": None if node.features is None else dict(node.features),
        "seed": node.seed,
    }


def node_from_json(described: dict[str, Any]) -> LearnedPriorNode:
    """The node that `node_to_json` described."""
    priors = {name: from_text(text) for name, text in described["priors"].items()}
    return LearnedPriorNode(
        described["name"], priors, features=described["features"], seed=described["seed"]
    )


def nothing_to_fit(model: LearnedModel, *options: Any, **more: Any) -> None:
    """What Ax calls to fit a learned model."""


def register() -> None:
    """Make the node and the model known to Ax, once for the process."""
    fit_botorch_model.register(LearnedModel)(nothing_to_fit)
    CORE_ENCODER_REGISTRY[LearnedPriorNode] = node_to_json
    CORE_CLASS_DECODER_REGISTRY[LearnedPriorNode.__name__] = node_from_json
    register_model(LearnedModel)
