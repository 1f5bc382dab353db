"""How learned priors do in the hosts they plug into: Ax, Optuna and our own optimiser."""
