r"""The learners whose hyper-parameters were tabulated, and the datasets they were run on.

The unit cube of each space is the paper's transformed space up to an affine map of every column:
logarithms where the paper takes logarithms, linear elsewhere.
"""

from collections.abc import Sequence
from typing import NamedTuple

from metaprior.data import Integer, Real, Space

# OpenML identifiers. The paper splits 33 of the 38 datasets of the original tables at random; three
# of the other five serve to choose hyper-parameters, and nothing is ever reported on them.
TRAINING_IDS = (
    *(3, 1036, 1038, 1043, 1046, 151, 1176, 1049, 1050, 31),
    *(1570, 37, 4134, 1063, 1067, 44, 1068, 50, 1461, 1462),
)
TEST_IDS = (335, 1489, 1486, 1494, 1504, 1120, 1510, 1479, 1480, 333, 1485, 1487, 334)
VALIDATION_IDS = (1464, 1467, 1471)
ALL_IDS = (*TRAINING_IDS, *VALIDATION_IDS, *TEST_IDS)


# Parts of the development datasets that a rehearsal holds out in turn.
_FOLDS = 3


class Split(NamedTuple):
    """Datasets to learn from, to choose hyper-parameters on, and to report on, by identifier."""

    training: tuple[int, ...]
    validation: tuple[int, ...]
    test: tuple[int, ...]

    def present(self, ids: Sequence[int]) -> "Split":
        """Those that a table has."""
        return Split(*(tuple(each for each in group if each in ids) for group in self))

    def rehearsal(self, index: int) -> "Split":
        """A third of the datasets for learning and validation, to validate on; the others are
        learned from, and there is nothing to report on."""
        development = (*self.training, *self.validation)
        size = len(development) // _FOLDS  # folds of one size, so that they can be stacked
        held_out = development[index % _FOLDS :: _FOLDS][:size]
        return Split(tuple(each for each in development if each not in held_out), held_out, ())


PAPER_SPLIT = Split(TRAINING_IDS, VALIDATION_IDS, TEST_IDS)


class Learner(NamedTuple):
    """A learner: its hyper-parameters, and the length of a run in the paper's table."""

    space: Space
    run_length: int


_WIDE = Real(2.0**-10, 2.0**10, log=True)

LEARNERS = {
    "glmnet": Learner(Space(**{"alpha": Real(0.0, 1.0), "lambda": _WIDE}), run_length=10),
    "rpart": Learner(
        Space(
            cp=Real(0.0, 1.0),
            maxdepth=Integer(1, 30),
            minbucket=Integer(1, 60),
            minsplit=Integer(1, 60),
        ),
        run_length=20,
    ),
    "xgboost": Learner(
        Space(
            **{
                "nrounds": Integer(1, 5000),
                "eta": Real(2.0**-10, 1.0, log=True),
                "lambda": _WIDE,
                "alpha": _WIDE,
                "subsample": Real(0.1, 1.0),
                # 0 is gblinear, 1 is gbtree. A categorical would take two columns; as a number it
                # takes one, like the paper's -1 and 1, and the space has the paper's 10 dimensions.
                "booster": Integer(0, 1),
                "max_depth": Integer(1, 15),
                "min_child_weight": Real(1.0, 128.0),
                "colsample_bytree": Real(0.0, 1.0),
                "colsample_bylevel": Real(0.0, 1.0),
            }
        ),
        run_length=50,
    ),
}
