from metaprior.adapters.optuna import MetaPriorSampler, load_tasks

__all__ = ["MetaPriorSampler", "load_tasks"]
