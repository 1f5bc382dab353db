"""The model card: what a person who finds the folder needs to know."""

from metaprior._prior import Prior
from metaprior.store._settings import settings_of


def model_card(prior: Prior) -> str:
    """Markdown that says what the prior is, what it was learned from, and how to use it."""
    dimensions = "\n".join(
        f"- `{name}`: {dimension}"
        for name, dimension in zip(prior.space.names, prior.space.dimensions, strict=True)
    )
    settings = "\n".join(
        f"- `{name}`: {value}" for name, value in settings_of(prior.method).items()
    )
    learned_from = "\n".join(f"- {name}: {value}" for name, value in prior.trained_on.items())
    return f"""# A learned prior

A prior over functions that were to be {prior.direction}d, learned by {type(prior.method).__name__}
from past runs. Use it on a new task of the same kind:

```python
import metaprior as mp

opt = mp.Optimizer(mp.load("this-folder"), seed=0)
x = opt.ask()
opt.tell(x, 0.0)  # the value you observed
```

## Space

{dimensions}

## Learned from

{learned_from}

## Method: {type(prior.method).__name__}

{settings}

## When not to use it

On tasks that are unlike the ones it was learned from, or over another space: its uncertainty is
honest about functions like those it has seen, and about no others.
"""
