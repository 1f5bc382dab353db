"""The numbers that the paper prints: its two tables of predictions, to be shown beside ours.

Means and what is printed after ±, of which the paper does not say what it is.
"""

CITATION = (
    "Rothfuss, Heyn, Chen and Krause, “Meta-Learning Reliable Priors in the Function Space”, "
    "NeurIPS 2021, appendix, tables of test log-likelihood and calibration error"
)

Published = dict[str, dict[str, tuple[float, float]]]

_ENVIRONMENTS = ("branin", "camelback", "hartmann6", "glmnet", "rpart", "xgboost")


def _by_environment(rows: dict[str, tuple[tuple[float, float], ...]]) -> Published:
    """By method, then by environment; the keys are those of `metaprior.lab.plots._looks`.

    The paper's "vanilla GP" is the fixed GP.
    """
    return {
        method: dict(zip(_ENVIRONMENTS, numbers, strict=True)) for method, numbers in rows.items()
    }


# fmt: off
LOG_LIKELIHOOD = _by_environment({
    "fpacohmap": ((-1.854, 0.015), (-0.235, 0.044), (1.448, 0.044),
                  (1.692, 0.041), (1.596, 0.087), (1.051, 0.079)),
    "pacohmap": ((-2.507, 0.267), (-0.716, 0.029), (1.337, 0.048),
                 (1.369, 0.025), (-0.808, 0.217), (0.916, 0.027)),
    "ablr": ((-3.684, 0.006), (-0.738, 0.008), (1.358, 0.059),
             (1.233, 0.012), (-0.471, 0.209), (0.949, 0.061)),
    "neuralprocess": ((-4.621, 0.232), (-0.888, 0.031), (1.288, 0.099),
                      (0.875, 0.523), (-0.566, 0.496), (0.421, 0.144)),
    "learnedgp": ((-3.738, 0.003), (0.395, 0.004), (1.305, 0.001),
                  (1.412, 0.002), (1.611, 0.002), (1.587, 0.004)),
    "fixedgp": ((-3.027, 0.000), (0.170, 0.000), (1.351, 0.041),
                  (0.831, 0.000), (1.380, 0.000), (0.872, 0.000)),
})

CALIBRATION_ERROR = _by_environment({
    "fpacohmap": ((0.095, 0.006), (0.046, 0.002), (0.049, 0.003),
                  (0.124, 0.010), (0.125, 0.006), (0.077, 0.001)),
    "pacohmap": ((0.105, 0.009), (0.054, 0.005), (0.085, 0.003),
                 (0.175, 0.004), (0.151, 0.006), (0.084, 0.003)),
    "ablr": ((0.180, 0.004), (0.049, 0.002), (0.044, 0.005),
             (0.220, 0.005), (0.158, 0.010), (0.097, 0.004)),
    "neuralprocess": ((0.146, 0.006), (0.053, 0.010), (0.063, 0.009),
                      (0.202, 0.009), (0.176, 0.013), (0.197, 0.038)),
    "learnedgp": ((0.112, 0.000), (0.069, 0.001), (0.062, 0.000),
                  (0.125, 0.000), (0.137, 0.001), (0.107, 0.001)),
    "fixedgp": ((0.123, 0.000), (0.085, 0.000), (0.089, 0.003),
                  (0.123, 0.000), (0.150, 0.000), (0.182, 0.000)),
})
# fmt: on
