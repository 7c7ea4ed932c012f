"""Output feedback that stabilises: the spectral abscissa, minimised from many starts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, islice
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from flexctl import checks
from flexctl.checks import Array, ComplexArray
from flexctl.errors import DesignError, InputError
from flexctl.parallel import on_one_thread
from flexctl.records import Summary
from flexctl.robustness import certify
from flexctl.search.nonsmooth import Minimum
from flexctl.search.synthesis.fixed_modes import (
    balance,
    require_decay,
    require_movable,
    require_no_fixed_mode,
    require_range,
)
from flexctl.search.synthesis.interconnection import Interconnection
from flexctl.search.synthesis.stability_search import (
    CLEAR,
    StabilitySearch,
    affordable,
    random_starts,
    require_single_gain,
    spectral_abscissa,
    variable_sizes,
)
from flexctl.search.synthesis.starts import make_decaying_starts, typical_rate
from flexctl.search.synthesis.structures import ControllerStructure

_ENOUGH = 0.1  # of the decay that is aimed at where none is wanted
_SEVERAL = 8  # slow controllers, of which the best is taken
_AT_ONE = 1e-6  # |ln z| of an integrator: round-off moves a double one by 1e-8
_AIM = 0.1  # of the modulus of the modes that are not stable: a decay that is stable enough


@dataclass(frozen=True, kw_only=True, repr=False)
class Stabilisation(Summary):
    """A controller u = Dk y + Ck xk, xk' = Bk y + Ak xk that stabilises x' = A x + B u, y = C x.

    Attributes
    ----------
    K
        Static gain (m, p), u = K y; of a controller with k states [Dk Ck; Bk Ak] (m + k, p + k).
    order
        k.
    Ak, Bk, Ck, Dk
        Its matrices (k, k), (k, p), (m, k), (m, p).
    closed
        State matrix of the closed loop, states of the controller last, (n + k, n + k).
    spectral_abscissa
        Largest real part of the closed loop's eigenvalues [1/s]; of a sampled one ln|z|/T, -inf
        where all are zero. Below zero: stable.
    eigenvalues
        Of the closed loop, (n + k,) [rad/s]; of a sampled one z.
    sample_time
        T [s], None if continuous.
    evaluations, starts
        Spectra computed, and starts tried.

    Examples
    --------
    A double integrator needs its rate; of its position alone a controller with one state:

    >>> import flexctl
    >>> found = flexctl.stabilise([[0, 1], [0, 0]], [[0], [1]], [[1, 0]], order=1)
    >>> found.spectral_abscissa < 0
    True
    >>> found.K.shape
    (2, 2)
    """

    K: Array
    closed: Array
    order: int
    spectral_abscissa: float
    eigenvalues: ComplexArray
    sample_time: float | None
    evaluations: int
    starts: int

    @cached_property
    def certified(self) -> bool:
        """Whether stability is proven in interval arithmetic, computed when it is first asked.

        The proof holds for all matrices that differ from `closed` by 1e-12 of each entry; False
        where there is no proof, which does not mean that the loop is unstable.
        """
        return certify(self.closed, sample_time=self.sample_time).proven

    @property
    def Ak(self) -> Array:
        """State matrix of the controller, (k, k)."""
        m, p = (size - self.order for size in self.K.shape)
        return self.K[m:, p:]

    @property
    def Bk(self) -> Array:
        """Input matrix of the controller, (k, p)."""
        m, p = (size - self.order for size in self.K.shape)
        return self.K[m:, :p]

    @property
    def Ck(self) -> Array:
        """Output matrix of the controller, (m, k)."""
        m, p = (size - self.order for size in self.K.shape)
        return self.K[:m, p:]

    @property
    def Dk(self) -> Array:
        """Feedthrough of the controller, (m, p)."""
        m, p = (size - self.order for size in self.K.shape)
        return self.K[:m, :p]

    def _facts(self) -> Mapping[str, Any]:
        return {
            "spectral_abscissa": self.spectral_abscissa,
            "K": self.K,
            "order": self.order,
            "sample_time": self.sample_time,
            "evaluations": self.evaluations,
        }


@on_one_thread
def stabilise(
    A: ArrayLike,
    B: ArrayLike,
    C: ArrayLike,
    order: int = 0,
    *,
    sample_time: float | None = None,
    decay: float | None = None,
    starts: int = 200,
    seed: int = 0,
) -> Stabilisation:
    """Find u = K y that stabilises x' = A x + B u, y = C x: static, or with `order` states.

    The spectral abscissa is minimised as a nonsmooth function [BurkeHenrionLewisOverton06] from
    linear-quadratic and random starts; it is not made as small as possible, as that takes ever
    larger gains, but until it is below -`decay`.

    Parameters
    ----------
    A, B, C
        (n, n) [1/s], (n, m) and (p, n).
    order
        States of the controller, 0 for a static gain.
    sample_time
        T [s]: x' is then the next x, T later.
    decay
        Wanted of the closed loop [1/s]. Linear-quadratic designs on A + decay I [AndersonMoore90]
        are tried first. The best that was found is returned if it is stable but slower. By default
        a tenth of the modulus of the fastest mode that is not stable is aimed at (of a sampled
        plant |ln z|/T; without any but integrators of the slowest other mode, or 1 rad/s or 1/T),
        and a tenth of that is accepted.
    starts
        Tried at most; fewer of large plants, as many as take ten to twenty seconds.
    seed
        Of the random starts: the same seed gives the same controller.

    Raises
    ------
    InputError
        Where shapes do not fit.
    DesignError
        Where a mode that is not stable, or decays more slowly than wanted, is uncontrollable or
        unobservable, or no start led to a stable loop: which is no proof that there is none, unless
        the mode is named, or all static gains of a plant with one u and one y were told apart.

    Examples
    --------
    An inverted pendulum, its angle and rate measured:

    >>> import flexctl
    >>> found = flexctl.stabilise([[0, 1], [9.81, 0]], [[0], [1]], [[1, 0], [0, 1]])
    >>> found.spectral_abscissa < -0.3, found.certified
    (True, True)
    """
    starts, seed = checks.whole("starts", starts, least=1), checks.whole("seed", seed, least=0)
    wanted = None if decay is None else checks.not_negative("decay", decay)
    plant = _checked(A, B, C, order, sample_time)
    require_decay(wanted, sample_time)
    with np.errstate(all="ignore"):  # what overflows is no stable loop
        require_no_fixed_mode(plant, "stabilise", (wanted or 0.0) * (sample_time or 1.0))
        structure = ControllerStructure.full(plant.B.shape[1], len(plant.C), plant.order)
        require_movable(plant, structure, variable_sizes(plant, structure), "stabilise")
        if plant.shape == (1, 1):
            require_single_gain(plant, "stabilise")
        aim = _aim(plant, sample_time) if wanted is None else wanted
        target = -aim if sample_time is None else float(np.exp(-aim * sample_time))
        search = StabilitySearch(plant, structure, target)
        random = np.random.default_rng(seed)
        decay = (wanted or 0.0) * (sample_time or 1.0)
        decaying = make_decaying_starts(plant, decay, random) if decay else ()
        first = (structure.nearest(plant.behind(K)) for K in decaying)
        trials = islice(chain(first, random_starts(plant, structure, random)), starts)
        share = _ENOUGH if wanted is None else 1.0
        found = _good_enough(search, trials, affordable(len(plant.A) + plant.order), share)
        K = structure.gain(found.x)
        closed = closed_states(A, B, C, K, plant.order)
    return _record(search, found, K, closed, sample_time)


def _record(
    search: StabilitySearch, found: Minimum, K: Array, closed: Array, sample_time: float | None
) -> Stabilisation:
    """Gather what is known of the loop, or refuse one that is not stable beyond doubt."""
    order = search.loop.order
    eigenvalues = np.linalg.eigvals(closed).astype(complex)
    abscissa = spectral_abscissa(eigenvalues, sample_time)
    clear = found.objective < search.edge - CLEAR * search.rate  # else it must be proven
    if not (clear and abscissa < 0):
        proven = abscissa < 0 and certify(closed, sample_time=sample_time).proven
        if not proven:
            near = abs(found.objective - search.edge) <= CLEAR * search.rate
            best = "0 but for round-off" if near else f"{abscissa:.3g} 1/s"
            raise DesignError(
                f"stabilise: no stable loop found from {search.starts} starts, the best has a "
                f"spectral abscissa of {best}; try order={order + 1}, or more starts"
            )
    return Stabilisation(
        K=K,
        closed=closed,
        order=order,
        spectral_abscissa=abscissa,
        eigenvalues=eigenvalues,
        sample_time=sample_time,
        evaluations=search.evaluations,
        starts=search.starts,
    )


def _good_enough(
    search: StabilitySearch, trials: Iterable[Array], most: int, share: float
) -> Minimum:
    """Take the first controller with a share of the wanted decay, else the best of several."""
    enough = search.edge + (search.target - search.edge) * share
    several: list[Minimum] = []
    for one in search.run(trials, most):
        several.append(one)
        if one.objective <= enough or len(several) >= _SEVERAL:
            break
    if several or search.best is None:
        return min(several, key=lambda one: one.objective)
    return search.best


def closed_states(A: ArrayLike, B: ArrayLike, C: ArrayLike, K: Array, order: int) -> Array:
    """State matrix (n + k, n + k) of a plant that is closed by K = [Dk Ck; Bk Ak]."""
    plant = [np.asarray(part, dtype=float) for part in (A, B, C)]
    return Interconnection.of(*plant, order=order).closed(K).A


def _checked(
    A: ArrayLike, B: ArrayLike, C: ArrayLike, order: int, sample_time: float | None
) -> Interconnection:
    """Check shapes, and scale the states."""
    A = checks.square("A", A)
    B, C = checks.finite("B", B), checks.finite("C", C)
    if not len(A):
        raise InputError("A: expected at least one state, got none")
    if B.ndim != 2 or len(B) != len(A) or not B.shape[1]:
        raise InputError(f"B: expected {len(A)} x at least 1 entries, got shape {B.shape}")
    if C.ndim != 2 or C.shape[1] != len(A) or not len(C):
        raise InputError(f"C: expected at least 1 x {len(A)} entries, got shape {C.shape}")
    order = checks.whole("order", order, least=0)
    if sample_time is not None:
        checks.positive("sample_time", sample_time)
    for name, part in (("A", A), ("B", B), ("C", C)):
        require_range(name, part)
    A, B, C = balance(A, B, C)
    return Interconnection.of(A, B, C, order=order, sampled=sample_time is not None)


def _aim(plant: Interconnection, sample_time: float | None) -> float:
    """Decay that is stable enough [1/s]: 0 of a plant that is stable."""
    w: ComplexArray = np.linalg.eigvals(plant.A).astype(complex)
    if sample_time is None:
        unstable = w.real >= -CLEAR * typical_rate(plant.A, sampled=False)
        rates, least = np.abs(w), 1e-6 * np.abs(w).max()
    else:
        unstable = np.abs(w) >= 1 - CLEAR
        with np.errstate(divide="ignore"):
            rates, least = np.abs(np.log(w)), _AT_ONE
        rates[unstable & (rates <= _AT_ONE)] = 0.0
    if not unstable.any():
        return 0.0
    others = rates[(rates > least) & np.isfinite(rates)]
    rate = rates[unstable].max() or (others.min() if others.size else 1.0)
    return _AIM * float(rate) / (sample_time or 1.0)
