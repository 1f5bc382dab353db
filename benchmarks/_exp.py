import os, sys, time, json
import jax, numpy as np, jax.numpy as jnp, equinox as eqx

jax.config.update("jax_enable_x64", True)
from dataclasses import replace
from metaprior.environments import *
from metaprior.studies import *
from metaprior.methods import *
from metaprior.bo import *
from metaprior.bo._acquisition import AbstractAcquisition
from metaprior.metrics import *


class Checking(AbstractAcquisition):
    beta: float = 2.0
    tol: float = 1e-3

    def score(self, posterior, run, anchors, *, key):
        m = jax.vmap(posterior.moments)(anchors)
        best = jnp.max(jnp.where(run.mask, run.y, -jnp.inf))
        goal = best + self.tol * (jnp.max(m.mean) - jnp.min(m.mean))
        needed = jnp.min((goal - m.mean) / jnp.sqrt(m.function_variance))
        stuck = (run.length > 0) & (needed > self.beta) & (run.length % 2 == 1)
        beta = jnp.where(stuck, 1.2 * needed, self.beta)

        def bound(x):
            m = posterior.moments(x)
            return m.mean + beta * jnp.sqrt(m.variance)

        return bound


fams = {f.name: f for f in (Mixture1d(), Branin(), Camelback(), Hartmann6())}
D = FPacohMap()
variants = dict(
    D=D,
    k10=replace(D, kappa=0.1),
    k03=replace(D, kappa=0.025),
    hl25=replace(D, hyper_lengthscale=0.25),
    hl10=replace(D, hyper_lengthscale=0.1),
    f2=replace(D, feature_dim=2),
    hv2=replace(D, hyper_variance=2.0),
    hv4=replace(D, hyper_variance=4.0),
    st2=replace(D, num_steps=2000),
    st8=replace(D, num_steps=8000),
    lr2=replace(D, learning_rate=2e-3),
    sp2=replace(D, scale_log_spread=2.0),
)
acc = dict(ucb=UpperConfidenceBound(), c3=Checking(tol=1e-3), c4=Checking(tol=1e-4),c2=Checking(tol=1e-2))
fam = fams[sys.argv[1]]
names = sys.argv[2].split(",")
accs = sys.argv[3].split(",")
seeds = int(sys.argv[4])
out = {}
for seed in range(1000, 1000 + seeds):
    kh, kt, ktr, kte = jax.random.split(jax.random.key(seed), 4)
    hist = collect_histories(fam, fam.num_tasks, fam.run_length, key=kh)
    test = fam.sample_tasks(10, key=kt)
    opt = fam.optimum(test).value
    for n in names:
        if n.startswith("v"):
            s = VanillaGP(lengthscale=float(n[1:])).meta_train(hist, key=ktr)
        else:
            s = variants[n].meta_train(hist, key=ktr)
        pr = predict_uniform(s, test, (1, 4, 8, 16), 200, fam.space.num_columns, key=kte)
        ce = np.mean([[calibration_error(c) for c in t] for t in pr.cdf])
        pce = np.mean([calibration_error(pr.cdf[:, j].ravel()) for j in range(4)])
        for an in accs:
            r = race(
                SurrogatePolicy(surrogate=s, acquisition=acc[an], space=fam.space),
                test,
                40,
                key=kte,
            )
            out.setdefault((n, an), []).append(
                (opt[:, None] - np.maximum.accumulate(r.values, 1), ce, pce, pr.log_density.mean())
            )
for k, v in out.items():
    reg = np.concatenate([a[0] for a in v])
    print(
        fam.name,
        k,
        " ".join("%.2g" % reg[:, t - 1].mean() for t in (5, 10, 20, 40)),
        "max20 %.2g" % reg[:, 19].max(),
        "stuck>1e-2: %d" % (reg[:, 19] > 1e-2).sum(),
        "ce %.3f pce %.3f ll %.2f" % tuple(np.mean([a[i] for a in v]) for i in (1, 2, 3)),
        flush=True,
    )
