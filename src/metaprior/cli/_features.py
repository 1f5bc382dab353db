"""`--feature NAME=VALUE`: features of a task, from the command line."""

from collections.abc import Sequence

from metaprior.data import FeatureValue
from metaprior.data.csv import feature_value
from metaprior.words import shortened


def features_from(texts: Sequence[str]) -> dict[str, FeatureValue | None]:
    """The features that texts such as `instances=65196` say; numbers, bools and texts as in CSV."""
    features: dict[str, FeatureValue | None] = {}
    for text in texts:
        name, separator, value = text.partition("=")
        name, value = name.strip(), value.strip()
        if not (name and separator and value):
            raise ValueError(
                f"--feature {shortened(text)} is not a name and a value; write --feature "
                "NAME=VALUE, or leave it out if the value is not known."
            )
        if name in features:
            raise ValueError(f"--feature names {shortened(name)} twice; give one value.")
        features[name] = feature_value(value)
    return features
