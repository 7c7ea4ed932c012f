"""Errors of the arm in a sampled loop: they act on it between the samples too.

The arm has inputs w(t) = delta z(t) of its own outputs, see `arm_errors`. Over every part of a
sample in which a torque is held, w and z are expanded in Legendre polynomials, and w = delta z is
projected on them: each polynomial is a channel of one sample's map. The expansion converges faster
than any power of the degree, which is raised until the map under an error is that of the
exponential of the arm under it, to `_EXACT`. Where modes turn too far in a sample for that, the map
is `approximate`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy.linalg
from numpy.polynomial import legendre

from flexctl.checks import Array
from flexctl.loop import LinearLoop
from flexctl.plant import LinearPlant
from flexctl.robustness.lft import Parameter, UncertainLoop
from flexctl.robustness.stiffness.arm_errors import (
    ArmError,
    EnteringErrors,
    Factors,
    error_parameter,
    factors_of,
)

_DEGREES = (1, 2, 3, 4, 6, 8, 11)  # of the polynomials, tried one after the other
_MOST_TURNS = 12.0  # rad of a mode in a sample: with more the last of them is not exact
_ROUGH = 2  # degree of an approximate map
_MEAN = 0  # of one sample among several after which a law repeats
_EXACT = 1e-8  # of the largest entry of a sample's map in modes: accepted error
_TRIED = (0.3, -0.3)  # relative errors at which it is checked


def add_sampled_arm_errors(
    loop: UncertainLoop,
    linear: LinearLoop,
    by_law: Array,
    errors: Sequence[ArmError],
    *,
    one_of_several: bool = False,
) -> UncertainLoop:
    """Add errors of the arm to the map of one sample of `linear`, not yet in s = (z - 1)/(z + 1).

    `by_law` (m, r) is what the channels of `loop` add to the torques of the law. The map of
    `one_of_several` samples after which a law repeats is approximate, with means of z alone: all
    together would have too many channels for a proof in any case.
    """
    plant, T = linear.plant, linear.sample_time or 0.0
    factors = factors_of(plant, errors, alone=len(errors) == 1 and not len(loop.owner))
    entering = EnteringErrors.of(plant, errors, factors).in_modes(plant)
    lifted = None if one_of_several else _lift_exactly(entering, plant, linear.delay, T, errors)
    exact, degree = lifted is not None, _MEAN if one_of_several else _ROUGH
    lifted = lifted or _lift(entering, _spans(linear.delay, T), degree)
    columns, own = _in_order(lifted, errors, factors)
    joined = _joined(loop, linear, by_law, lifted.ordered(columns), own)
    return replace(joined, approximate=not exact)


@dataclass(frozen=True, kw_only=True)
class _Span:
    """A part of a sample [s], and how many samples ago the torque that acts in it was found."""

    time: float
    ago: int


@dataclass(frozen=True, kw_only=True)
class _Lifted:
    """One sample of the arm in modes: state `end` after it, and coefficients `z` of its outputs.

    Both by the state "x" (., 2n), torques "u" (., k m) of this sample and those before, and
    coefficients "w" (., r) of the errors' inputs. Each of these r channels belongs to an output of
    the arm (`channel`), of an error (`owner`), and to a polynomial (`degree`).
    """

    end: dict[str, Array]
    z: dict[str, Array]
    S: Array  # [q; v] = S y, (2n, 2n)
    owner: Array
    channel: Array
    degree: Array

    def ordered(self, order: Array) -> _Lifted:
        """Return the same with its channels in another order (r,)."""
        end, z = dict(self.end), {key: rows[order] for key, rows in self.z.items()}
        end["w"], z["w"] = end["w"][:, order], z["w"][:, order]
        of = {name: getattr(self, name)[order] for name in ("owner", "channel", "degree")}
        return replace(self, end=end, z=z, **of)

    def under(self, delta: Array) -> Array:
        """Map (2n, 2n) of the state without torques, under errors delta (r,) of the channels."""
        inner = np.linalg.solve(np.eye(len(delta)) - self.z["w"] * delta, self.z["x"])
        return self.end["x"] + (self.end["w"] * delta) @ inner


def _lift_exactly(
    entering: EnteringErrors,
    plant: LinearPlant,
    delay: float,
    T: float,
    errors: Sequence[ArmError],
) -> _Lifted | None:
    """Lift the arm over a sample of T [s] by as few polynomials as are accurate; None without."""
    if np.abs(np.linalg.eigvals(entering.A)).max() * T > _MOST_TURNS:
        return None
    spans = _spans(delay, T)
    expected = [
        (k, size, _under(plant, entering.S, error, size, T))
        for k, error in enumerate(errors)
        for size in _TRIED
    ]
    for degree in _DEGREES:
        lifted = _lift(entering, spans, degree)
        away = (
            np.abs(lifted.under(np.where(lifted.owner == k, size / errors[k].range, 0.0)) - Phi)
            / np.abs(Phi).max()
            for k, size, Phi in expected
        )
        if max(float(part.max()) for part in away) <= _EXACT:
            return lifted
    return None


def _under(plant: LinearPlant, S: Array, error: ArmError, size: float, T: float) -> Array:
    """e^{AT} (2n, 2n) in modes of the arm under a relative error, without torques."""
    pairs = ((plant.M, error.M), (plant.D, error.D), (plant.K, error.K))
    M, D, K = (own + size * change for own, change in pairs)
    lower = np.linalg.solve(M, np.hstack([-K, -D]))
    A = np.vstack([np.eye(len(M), 2 * len(M), len(M)), lower])
    return scipy.linalg.expm(np.linalg.solve(S, A @ S) * T)


def _spans(delay: float, T: float) -> tuple[_Span, ...]:
    """Parts of a sample of T [s] between the times at which torques change."""
    whole, part = divmod(delay, T)
    if part <= 1e-12 * T:
        return (_Span(time=T, ago=int(whole)),)
    return _Span(time=part, ago=int(whole) + 1), _Span(time=T - part, ago=int(whole))


def _lift(arm: EnteringErrors, spans: Sequence[_Span], degree: int) -> _Lifted:
    """Go through a sample, span by span, with polynomials up to a degree in each."""
    (N, m), r, d = arm.B.shape, arm.U.shape[1], degree + 1
    sizes = {"u": (1 + max(span.ago for span in spans)) * m, "w": len(spans) * r * d}
    state = {"x": np.eye(N)} | {key: np.zeros((N, size)) for key, size in sizes.items()}
    seen = {key: list[Array]() for key in state}
    for i, span in enumerate(spans):
        end, out = _over(arm, span.time, degree)
        z = {key: out["x"] @ part for key, part in state.items()}
        state = {key: end["x"] @ part for key, part in state.items()}
        for key, first in (("u", span.ago * m), ("w", i * r * d)):
            own = slice(first, first + end[key].shape[1])
            z[key][:, own] += out[key]
            state[key][:, own] += end[key]
        for key, part in z.items():
            seen[key].append(part)
    channel = np.tile(np.repeat(np.arange(r), d), len(spans))
    return _Lifted(
        end=state,
        z={key: np.vstack(parts) for key, parts in seen.items()},
        S=arm.S,
        owner=arm.owner[channel],
        channel=channel,
        degree=np.tile(np.arange(d), len(spans) * r),
    )


def _over(arm: EnteringErrors, h: float, degree: int) -> tuple[dict[str, Array], dict[str, Array]]:
    """State after h [s], and the coefficients of z over it, by x, u and the coefficients c of w.

    phi_k(t/h) = sqrt(2k + 1) P_k(2t/h - 1) are orthonormal on [0, 1], and phi' = D phi. So w =
    phi(0)' eta of eta' = D' eta, eta(0) = c, and one exponential gives x at a place.
    """
    (N, m), r, d = arm.B.shape, arm.U.shape[1], degree + 1
    first = _polynomials(np.array([0.0]), degree)[:, 0]
    whole = np.zeros((N + m + r * d, N + m + r * d))
    whole[:N, :N], whole[:N, N : N + m] = arm.A * h, arm.B * h
    whole[:N, N + m :] = h * np.kron(arm.U, first)
    whole[N + m :, N + m :] = np.kron(np.eye(r), _derivative(degree).T)
    turns = float(np.abs(np.linalg.eigvals(arm.A)).max()) * h
    nodes, weights = legendre.leggauss(2 * degree + 12 + int(turns / 2))
    at = (nodes + 1) / 2
    phi, (by_u, by_w) = _polynomials(at, degree), arm.direct
    z = arm.by_x @ scipy.linalg.expm(at[:, None, None] * whole)[:, :N]
    z[:, :, N : N + m] += by_u
    z[:, :, N + m :] += np.einsum("ij,kg->gijk", by_w, phi).reshape(len(at), r, r * d)
    out = np.einsum("g,kg,gij->ikj", weights / 2, phi, z).reshape(r * d, -1)
    end = scipy.linalg.expm(whole)[:N]
    parts = {"x": slice(0, N), "u": slice(N, N + m), "w": slice(N + m, None)}
    by_end, by_out = ({key: full[:, own] for key, own in parts.items()} for full in (end, out))
    return by_end, by_out


def _polynomials(at: Array, degree: int) -> Array:
    """phi_k (degree + 1, K) at places in [0, 1] (K,)."""
    sizes = np.sqrt(2 * np.arange(degree + 1) + 1)
    return np.asarray(legendre.legvander(2 * at - 1, degree)).T * sizes[:, None]


def _derivative(degree: int) -> Array:
    """D of phi' = D phi: P_k' is the sum of (2 j + 1) P_j over j = k - 1, k - 3, ..."""
    D = np.zeros((degree + 1, degree + 1))
    for k in range(degree + 1):
        for j in range(k - 1, -1, -2):
            D[k, j] = 2 * np.sqrt((2 * k + 1) * (2 * j + 1))
    return D


def _in_order(
    lifted: _Lifted, errors: Sequence[ArmError], factors: Sequence[Factors]
) -> tuple[Array, list[Parameter]]:
    """Order of the channels, error by error, and the errors' parameters.

    Means over a span come first; those of separable channels and all polynomials of a higher
    degree, which contribute little, are separable.
    """
    order, parameters, start = list[int](), list[Parameter](), 0
    for k, (error, (_, Q, separable)) in enumerate(zip(errors, factors, strict=True)):
        own, kept = np.flatnonzero(lifted.owner == k), start + len(Q) - separable
        core = (lifted.channel[own] < kept) & (lifted.degree[own] == 0)
        order += [*own[core].tolist(), *own[~core].tolist()]
        parameters.append(error_parameter(error, len(own), int((~core).sum())))
        start += len(Q)
    return np.array(order), parameters


def _joined(
    loop: UncertainLoop,
    linear: LinearLoop,
    by_law: Array,
    lifted: _Lifted,
    own: Sequence[Parameter],
) -> UncertainLoop:
    """Close the arm's channels by the law: u = K x + by_law w, and torques that wait."""
    n, m, r = linear.feedback.shape[1], len(linear.K), len(lifted.owner)
    U, V = np.zeros((loop.size, r)), np.zeros((r, loop.size))
    U[:n] = lifted.S @ lifted.end["w"]
    by_new, by_waiting = lifted.z["u"][:, :m], lifted.z["u"][:, m:]
    V[:, :n] = np.linalg.solve(lifted.S.T, lifted.z["x"].T).T
    V[:, : linear.K.shape[1]] += by_new @ linear.K
    first = linear.K.shape[1]
    V[:, first : first + by_waiting.shape[1]] += by_waiting
    D = np.block(
        [
            [loop.D, np.zeros((len(loop.D), r))],
            [by_new @ by_law, lifted.z["w"]],
        ]
    )
    return replace(
        loop,
        U=np.hstack([loop.U, U]),
        V=np.vstack([loop.V, V]),
        D=D,
        parameters=(*loop.parameters, *own),
    )
