"""A process of which only a description is left: what a saved prior knows of its hyper-prior."""

import equinox as eqx

from metaprior.gp import JITTER, AbstractProcess


class DescribedProcess(AbstractProcess):
    """Stands for a hyper-prior in the settings of a loaded prior, which no longer needs it."""

    description: str = eqx.field(static=True)

    def sample(self, x, num, *, key, jitter=JITTER):
        raise ValueError(
            f"Only a description of this hyper-prior was saved ({self.description}); to train "
            "again, give the process itself as `hyper_prior`."
        )


def describe(process: AbstractProcess) -> str:
    """All numbers and parts of a process, on one line."""
    if isinstance(process, DescribedProcess):
        return process.description
    return " ".join(eqx.tree_pformat(process, short_arrays=False).split())
