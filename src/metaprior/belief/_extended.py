r"""What was learned, in a study that is larger than what the prior knows.

    symbol      meaning                                                          shape
    g           a member of the learned belief, conditioned on the points of the
                run that it knows: mean m_g and covariance C
    z, c, rho   see `_novelty`                                                   (k,)
    H           a stationary kernel over the study's cube, half of it over its
                new columns alone; q is one of a few sizes, lengthscales and
                levels of noise                                                  (Q, n, k)
    m_0         the mean of m_g over all that the learned belief knows

$$ f(u) = c\, g(z) + (1 - c)\, m_0 + \rho\, h(u), \qquad h \sim GP(0, H_q) $$

Inside of what the prior knows, $c = 1$ and $\rho = 0$: nothing changes. Outside, uncertainty grows,
and far outside the Gaussian process h is left, which knows no past. A new choice begins as the mean
of the known ones (that is z), with the variance of h. With new parameters, the learned function is
what they all have in common, and h says how this study departs from it.

$f$ is conditioned on the points that are new, jointly and exactly:

$$ T(u, u') = c\, c'\, C(z, z') + \rho\, \rho'\, H_q(u, u') $$

The members are pairs of g and q, weighted by how likely they made the new points. Where only bounds
are wider, large sizes of h are likely beforehand as far as the best points of this study, inside,
are worse than those of past ones.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from jaxtyping import Float

from metaprior.belief._belief import AbstractBelief
from metaprior.belief._extended_members import ExtendedMembers, ExtendedPrior
from metaprior.belief._kernels import AbstractStackedKernel, StackedMatern, StackedSum
from metaprior.belief._linalg import JITTER, LOG_2_PI, cholesky, invert_factor
from metaprior.belief._mixture import BeliefMoments, Group, Groups, logsumexp, moments_of
from metaprior.belief._novelty import NearestKnown, Novelty
from metaprior.belief._processes import pick
from metaprior.belief._seen import SeenMembers

# Of h: standard deviations, relative to that of past values, and lengthscales, in units of sqrt(w).
# Before the run, the logarithm of a size is normal around that of the usual one, with this standard
# deviation.
SIZE_SPREAD = 0.8
USUAL_SIZE = 1.0
# Of what lies beyond known bounds, the usual size (see `ExtendedBelief.usual_size`) is in between.
SMALLEST_USUAL, LARGEST_USUAL = 0.5, 1.5
SIZES = np.array([0.1, 0.3, 1.0, 3.0, 10.0])
LENGTHSCALES = np.array([0.15, 0.4])
# What a learned member calls noise is often a rough function: there may be less at new points.
NOISE_FACTORS = np.array([1.0, 1e-2, 1e-4])
# What is less likely than this beside the likeliest is left out.
UNLIKELY = 1e-4


@dataclass(frozen=True)
class ExtendedBelief(AbstractBelief):
    """A learned belief, and what it does not know of a study.

    - `points`: all over what the learned belief knows, in its own cube.
    """

    learned: AbstractBelief
    view: NearestKnown
    novelty: Novelty
    points: Float[np.ndarray, "m d"]

    def groups(self, x, y) -> Groups:
        is_new = self.novelty(x).new > 0.0
        learned = self.learned.groups(self.view(x[~is_new]), y[~is_new])
        known = moments_of(learned, self.points).mean
        level = float(np.mean(known))
        log_likely = _log_weights(self.usual_size(float(np.max(known))))
        found = []
        for group in learned:
            every = np.arange(group.members.count)
            seen = SeenMembers(group.members, self.view)
            prior = ExtendedPrior(
                seen, every, self.kernels, _grid()[2][:, 0], self.novelty, level, self.unit
            )
            members, log_evidence = conditioned(prior, x[is_new], y[is_new])
            with np.errstate(divide="ignore"):
                log_weights = np.log(group.weights)[:, None] + log_likely
            found.append((members, log_weights + log_evidence))
        return _likely(found)

    @cached_property
    def unit(self) -> float:
        """How much values differ, as the learned belief says before it has seen any."""
        asked = self._before
        return float(np.sqrt(np.mean(asked.function_variance) + np.var(asked.mean)))

    @cached_property
    def kernels(self) -> AbstractStackedKernel:
        """H for each size and lengthscale."""
        sizes, lengthscales, _ = _grid()
        variance = (self.unit * sizes[:, 0]) ** 2
        own = self.novelty.columns
        every = np.repeat(lengthscales * np.sqrt(len(own)), len(own), axis=1)
        # What is new by itself is found sooner than how it acts together with all the rest.
        alone = np.where(own, lengthscales * np.sqrt(np.sum(own)), np.inf)
        return StackedSum(*(StackedMatern(scale, 0.5 * variance, 2.5) for scale in (alone, every)))

    @cached_property
    def best(self) -> float:
        """The highest that the learned belief expects of what it knows, before the run."""
        return float(np.max(self._before.mean))

    @cached_property
    def rise(self) -> float:
        """How far that is above the mean, in units of past values; 1 for any more."""
        return min((self.best - float(np.mean(self._before.mean))) / self.unit, 1.0)

    @cached_property
    def _before(self) -> BeliefMoments:
        """What the learned belief expects all over what it knows, before the run."""
        nothing = self.learned.condition(self.points[:0], np.zeros(0))
        return nothing.moments(self.points)

    def usual_size(self, best: float) -> float:
        """The size of h that is likeliest before there are new points, given the highest that is
        expected now of what is known.

        Past studies were bounded where their best points were. So there is little to be found
        beyond bounds, as long as this study has such points too; what it lacks of them may be
        there. A prior that expects no point to be better than others knows nothing of this.
        """
        if not self.novelty.is_wider_only:
            return USUAL_SIZE
        lack = (self.best - best) / self.unit
        least = USUAL_SIZE + self.rise * (SMALLEST_USUAL - USUAL_SIZE)
        return min(max(lack, least), LARGEST_USUAL)


def _grid() -> list[Float[np.ndarray, "Q 1"]]:
    """Size, lengthscale and factor of the noise of each kernel."""
    return [g.reshape(-1, 1) for g in np.meshgrid(SIZES, LENGTHSCALES, NOISE_FACTORS)]


def _log_weights(usual_size: float) -> Float[np.ndarray, " Q"]:
    """Logarithms of how likely each kernel is before there are new points."""
    sizes, _, _ = _grid()
    weights = -0.5 * (np.log(sizes[:, 0] / usual_size) / SIZE_SPREAD) ** 2
    return weights - logsumexp(weights)


def conditioned(
    prior: ExtendedPrior, x: Float[np.ndarray, "n w"], y: Float[np.ndarray, " n"]
) -> tuple[ExtendedMembers, Float[np.ndarray, "K Q"]]:
    """Members after values `y` at the new points `x`, and the logarithm of how likely each made
    them."""
    noise = prior.noise_variance[:, :, None, None] * np.eye(len(x))
    covariance = prior.sections(x, x).values + noise
    basis = invert_factor(cholesky(covariance, JITTER * prior.unit**2))
    residual = np.broadcast_to((y - prior.mean(x))[:, None], basis.shape[:3])
    whitened = np.einsum("KQij,KQj->KQi", basis, residual)
    log_precision = np.sum(np.log(np.diagonal(basis, axis1=2, axis2=3)), axis=2)
    log_evidence = log_precision - 0.5 * (np.sum(whitened**2, axis=2) + len(x) * LOG_2_PI)
    coefficients = np.einsum("KQij,KQi->KQj", basis, whitened)
    return ExtendedMembers(prior, x, basis, coefficients), log_evidence


def _likely(found: list[tuple[ExtendedMembers, Float[np.ndarray, "K Q"]]]) -> Groups:
    """Members with their weights, without learned ones and kernels that are unlikely."""
    log_weights = [log_weights for _, log_weights in found]
    least = max(np.max(own) for own in log_weights) + np.log(UNLIKELY)
    kept = []
    for members, own in found:
        rows, kernels = (np.flatnonzero(np.max(own, axis=i) > least) for i in (1, 0))
        if len(rows):
            kept.append((_picked(members, rows, kernels), own[np.ix_(rows, kernels)].reshape(-1)))
    total = logsumexp(np.concatenate([own for _, own in kept]))
    return tuple(Group(members, np.exp(own - total)) for members, own in kept)


def _picked(members: ExtendedMembers, rows: np.ndarray, kernels: np.ndarray) -> ExtendedMembers:
    prior = members.prior
    return ExtendedMembers(
        replace(
            prior,
            rows=prior.rows[rows],
            kernels=pick(prior.kernels, kernels.tolist()),
            noise_factor=prior.noise_factor[kernels],
        ),
        members.x,
        members.basis[np.ix_(rows, kernels)],
        members.coefficients[np.ix_(rows, kernels)],
    )
