"""Eight studies of the past, a prior learned from them, and a ninth study that starts from it."""

import optuna

import metaprior as mp
import optunahub


def objective(trial: optuna.Trial, centre: float) -> float:
    """One of many similar tasks: the best learning rate and depth are never quite the same."""
    rate = trial.suggest_float("rate", 1e-4, 1.0, log=True)
    depth = trial.suggest_int("depth", 1, 10)
    return (rate / centre - 1.0) ** 2 / (1.0 + rate / centre) + 0.05 * (depth - 6) ** 2


def main() -> None:
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    package = optunahub.load_module(package="samplers/metaprior")

    # What a team has after some time: any storage of Optuna will do, here it is in memory.
    storage = optuna.storages.InMemoryStorage()
    for i in range(8):
        past = optuna.create_study(
            study_name=f"past-{i}",
            storage=storage,
            sampler=optuna.samplers.RandomSampler(seed=i),
        )
        past.optimize(lambda trial, i=i: objective(trial, 0.02 + 0.002 * i), n_trials=15)

    # `mp.learn(tasks)` alone chooses the method and its settings on held-out studies.
    tasks = package.load_tasks(storage)
    prior = mp.learn(tasks, method=mp.methods.FPacohMap(num_steps=300), seed=0)

    study = optuna.create_study(sampler=package.MetaPriorSampler(prior, seed=0))
    study.optimize(lambda trial: objective(trial, 0.03), n_trials=10)
    print(f"best of {len(study.trials)} trials: {study.best_value:.4f} at {study.best_params}")


if __name__ == "__main__":
    main()
