"""A linear loop with real relative errors (a linear fractional transformation), its response."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import scipy.linalg

from flexctl import checks
from flexctl.checks import Array, ComplexArray
from flexctl.errors import ComputationError, InputError
from flexctl.loop import VANISHED

(_TRSM,) = scipy.linalg.get_blas_funcs(("trsm",), dtype=complex)
_FEW = 50  # frequencies, up to which they are taken one by one
_ZERO = 1e-10  # of the largest entry in row and column: smaller ones are round-off of solvers
_BARE = 1e-3  # of the nominal value: the least that is tried of a quantity that must not vanish


@dataclass(frozen=True, kw_only=True)
class Parameter:
    """A real relative error delta [-] that enters `size` channels.

    Attributes
    ----------
    name, size
        Name and number of channels.
    lowest, highest
        Range of physical values [-], such as from -1 on for a stiffness.
    excluded
        Whether `lowest` itself is not physical: a stiffness must not vanish, a payload may.
    range
        Relative error [-] of the physical quantity at delta = 1.
    separable
        How many of the last channels may be bounded as independent errors with little
        conservatism, as the dampers of different modes.
    kind
        Kind of physical quantity; errors of one kind may be equal.
    """

    name: str
    size: int
    lowest: float = -np.inf
    highest: float = np.inf
    excluded: bool = False
    range: float = 1.0
    separable: int = 0
    kind: str = ""

    @property
    def least(self) -> float:
        """Smallest value to try: `lowest`, or slightly above where that is excluded."""
        return self.lowest * (1 - _BARE) if self.excluded else self.lowest

    def means(self, value: float) -> bool:
        """Whether a value is physical."""
        return value > self.lowest or (value == self.lowest and not self.excluded)

    def times(self, slope: float) -> tuple[float, float]:
        """Range of t in which the error t * `slope` is physical."""
        if not slope:
            return -np.inf, np.inf
        low, high = sorted((self.lowest / slope, self.highest / slope))
        return low, high


@dataclass(frozen=True, kw_only=True)
class UncertainLoop:
    """x' = A x + U w,  z = V x + D w,  w = Delta z,  Delta = diag(delta_i I) of real delta_i.

    So x' = (A + U Delta (I - D Delta)^-1 V) x; delta = 0 is the loop without errors. A sampled loop
    is brought to this form by s = (z - 1)/(z + 1) of its multipliers z, which maps the unit circle
    onto the imaginary axis: its eigenvalues s are not rates, see `in_time`.

    Attributes
    ----------
    A
        (N, N) [1/s]; [-] for a sampled loop.
    U, V, D
        (N, r), (r, N) and (r, r); channels in the order of `parameters`.
    parameters
        Errors (p,); their sizes add up to r.
    states
        Names of x (N,).
    sample_time
        Sample time [s]; None for a continuous loop.
    approximate
        Whether it is only near the loop that is meant: its bounds prove nothing of that one.

    Raises
    ------
    InputError
        When sizes do not fit.
    """

    A: Array
    U: Array
    V: Array
    D: Array
    parameters: tuple[Parameter, ...]
    states: tuple[str, ...]
    sample_time: float | None = None
    approximate: bool = False

    def __post_init__(self) -> None:
        """Check sizes."""
        n, r = len(self.states), sum(parameter.size for parameter in self.parameters)
        for name, shape in (("A", (n, n)), ("U", (n, r)), ("V", (r, n)), ("D", (r, r))):
            checks.shape(name, getattr(self, name), shape)

    @property
    def size(self) -> int:
        """Number N of states."""
        return len(self.A)

    @cached_property
    def owner(self) -> Array:
        """Index of the parameter of every channel (r,)."""
        return np.repeat(np.arange(len(self.parameters)), [p.size for p in self.parameters])

    def counted_from(self, delta: Array) -> tuple[Array, Array, Array, Array]:
        """Return A, U, V and D with errors counted from delta (p,), which may be complex."""
        scaled = np.asarray(delta)[self.owner]
        inner = np.eye(len(scaled)) - self.D * scaled
        V, D = np.linalg.solve(inner, self.V), np.linalg.solve(inner, self.D)
        return self.A + (self.U * scaled) @ V, self.U + (self.U * scaled) @ D, V, D

    def matrix(self, delta: Array) -> Array:
        """State matrix (..., N, N) under errors delta (..., p)."""
        scaled = np.asarray(delta, dtype=float)[..., None, self.owner]
        inner = np.eye(len(self.D)) - self.D * scaled
        return self.A + (self.U * scaled) @ np.linalg.solve(inner, self.V)

    def poles(self, delta: Array) -> ComplexArray:
        """Eigenvalues (..., N) under errors delta (..., p), block by block."""
        A = self.matrix(delta)
        values = [np.linalg.eigvals(A[..., own[:, None], own]) for own in self.blocks]
        return np.concatenate([np.zeros((*A.shape[:-2], 0)), *values], axis=-1).astype(complex)

    @cached_property
    def nominal_poles(self) -> ComplexArray:
        """Eigenvalues (N,) without errors."""
        return self.poles(np.zeros(len(self.parameters)))

    @cached_property
    def blocks(self) -> list[Array]:
        """States of the diagonal blocks of A(delta): all entries between two blocks are zero."""
        return [states for states, _ in self.parts(0.0) if len(states)]

    @cached_property
    def balanced(self) -> UncertainLoop:
        """The loop with its states in units, powers of two, that balance A and U V.

        Raises InputError if it has more than one parameter.
        """
        if len(self.parameters) != 1:
            expected = "a loop of one error (UncertainLoop.along)"
            raise InputError(f"parameters: expected {expected}, got {len(self.parameters)}")
        size = np.abs(self.A) + np.abs(self.U) @ np.abs(self.V)
        _, (scale, _) = scipy.linalg.matrix_balance(size, permute=False, separate=True)
        A = self.A / scale[:, None] * scale
        return replace(self, A=A, U=self.U / scale[:, None], V=self.V * scale)

    @cached_property
    def uncoupled(self) -> list[UncertainLoop]:
        """Uncoupled parts of a balanced loop of one error; parts without the error are omitted.

        Entries as small as round-off of Riccati equations count as zero. The parts only give
        candidates for crossings, which are verified with the whole loop.
        """
        return [self._part(*part) for part in self.parts(_ZERO) if all(map(len, part))]

    def _part(self, states: Array, channels: Array) -> UncertainLoop:
        """Restrict the loop to some states and channels, by their indices."""
        return replace(
            self,
            A=self.A[np.ix_(states, states)],
            U=self.U[np.ix_(states, channels)],
            V=self.V[np.ix_(channels, states)],
            D=self.D[np.ix_(channels, channels)],
            parameters=(replace(self.parameters[0], size=len(channels)),),
            states=tuple(self.states[k] for k in states),
        )

    def parts(self, negligible: float) -> list[tuple[Array, Array]]:
        """Split into parts that do not act on each other: indices of their states and channels.

        Entries up to `negligible` of the largest in their row, or in their column, count as zero.
        """
        whole = np.abs(np.block([[self.A, self.U], [self.V, self.D]]))
        rows, columns = whole.max(axis=1, initial=0.0), whole.max(axis=0, initial=0.0)
        parts = connected(whole > negligible * np.minimum.outer(rows, columns))
        return [(own[own < self.size], own[own >= self.size] - self.size) for own in parts]

    def along(self, direction: Array, name: str = "scale") -> UncertainLoop:
        """Return the loop of one error t, all errors being t times `direction` (p,).

        Raises
        ------
        InputError
            When the direction has another size, or moves no channel.
        """
        direction = np.asarray(direction, dtype=float)
        checks.shape("direction", direction, (len(self.parameters),))
        kept = direction[self.owner] != 0
        if not kept.any():
            raise InputError("direction: expected one error other than zero at least, got none")
        d = direction[self.owner][kept]
        lows, highs = zip(*map(Parameter.times, self.parameters, direction), strict=True)
        one = Parameter(name=name, size=len(d), lowest=max(lows), highest=min(highs))
        V, D = d[:, None] * self.V[kept], d[:, None] * self.D[np.ix_(kept, kept)]
        return replace(self, U=self.U[:, kept], V=V, D=D, parameters=(one,))

    def at(self, delta: Array) -> UncertainLoop:
        """Return the same loop with errors counted from delta (p,)."""
        delta = np.asarray(delta, dtype=float)
        shifted = tuple(
            replace(p, lowest=p.lowest - x, highest=p.highest - x)
            for p, x in zip(self.parameters, delta, strict=True)
        )
        A, U, V, D = self.counted_from(delta)
        return replace(self, A=A, U=U, V=V, D=D, parameters=shifted)

    def in_time(self, values: ComplexArray) -> ComplexArray:
        """Eigenvalues (k,) as rates [1/s]: log((1 + s)/(1 - s))/T for a sampled loop.

        Minus infinity for states that are gone after a sample.
        """
        if self.sample_time is None:
            return values
        with np.errstate(divide="ignore", invalid="ignore"):
            z = (1 + values) / (1 - values)
            logs = np.log(np.where(np.abs(z) > VANISHED, z, 0.0).astype(complex))
        # part by part: (-inf + 0j) / T is no number
        rates = np.real(logs) / self.sample_time + 1j * (np.imag(logs) / self.sample_time)
        return rates.astype(complex)

    def frequency(self, value: complex) -> float:
        """Frequency [rad/s] of an eigenvalue on the imaginary axis: |Im|, or 2 atan(|Im|)/T."""
        imaginary = abs(value.imag)
        return 2 * float(np.arctan(imaginary)) / self.sample_time if self.sample_time else imaginary


def connected(acts: Array) -> list[Array]:
    """Find the diagonal blocks, by indices, of a matrix with entries other than zero at `acts`."""
    acts, left, blocks = acts | acts.T, np.ones(len(acts), dtype=bool), []
    while left.any():
        own, wider = ~left, np.arange(len(acts)) == left.argmax()
        while (wider != own).any():
            own, wider = wider, wider | acts[wider].any(axis=0)
        blocks.append(np.flatnonzero(own))
        left &= ~own
    return blocks


def in_series(samples: Sequence[UncertainLoop]) -> UncertainLoop:
    """Make one map of those of several samples, each x+ = A x + U w, z = V x + D w, with one delta.

    The channels of every parameter are those of all samples, the first sample first.
    """
    A, U = np.eye(samples[0].size), np.zeros((samples[0].size, 0))
    rows, D = list[Array](), np.zeros((0, 0))
    for one in samples:
        before = np.zeros((len(D), len(one.D)))
        D = np.block([[D, before], [one.V @ U, one.D]])
        rows.append(one.V @ A)
        A, U = one.A @ A, np.hstack([one.A @ U, one.U])
    owner = np.concatenate([one.owner for one in samples])
    order = np.argsort(owner, kind="stable")
    parameters = tuple(
        replace(parameter, size=int((owner == k).sum()))
        for k, parameter in enumerate(samples[0].parameters)
    )
    return replace(
        samples[0],
        A=A,
        U=U[:, order],
        V=np.vstack(rows)[order],
        D=D[np.ix_(order, order)],
        parameters=parameters,
        approximate=any(one.approximate for one in samples),
    )


def bilinear(loop: UncertainLoop, sample_time: float) -> UncertainLoop:
    """Map a loop of one sample, x+ = A x + U w, z = V x + D w, to s = (z - 1)/(z + 1).

    States are scaled for the test of a multiplier -1, as deflections and rates of a stiff arm
    differ by its frequencies. The result is in the original units.

    Raises
    ------
    ComputationError
        When a multiplier is -1, which has no image.
    """
    identity = np.eye(len(loop.A))
    _, (scale, _) = scipy.linalg.matrix_balance(loop.A, permute=False, separate=True)
    A, U, V = loop.A * scale / scale[:, None], loop.U / scale[:, None], loop.V * scale
    plus = A + identity
    if 1 / np.linalg.cond(plus) < np.finfo(float).eps:
        raise ComputationError("sampled loop: expected no multiplier -1, got one: it alternates")
    from_U = np.linalg.solve(plus, U)
    return replace(
        loop,
        A=np.linalg.solve(plus, A - identity) * scale[:, None] / scale,
        U=np.sqrt(2) * from_U * scale[:, None],
        V=np.sqrt(2) * np.linalg.solve(plus.T, V.T).T / scale,
        D=loop.D - V @ from_U,
        sample_time=sample_time,
    )


@dataclass(frozen=True, kw_only=True)
class Response:
    """M(jw) = D + V (jw - A)^-1 U that the errors of an uncertain loop see, by a Schur form of A.

    Attributes
    ----------
    A, U, V, D
        Matrices of the loop, its states scaled; (N, N), (N, r), (r, N), (r, r).
    T, left, right
        A = Q T Q*, left = V Q and right = Q* U.
    """

    A: Array
    U: Array
    V: Array
    D: Array
    T: ComplexArray
    left: ComplexArray
    right: ComplexArray

    @property
    def poles(self) -> ComplexArray:
        """Poles (N,)."""
        return np.diag(self.T)

    @property
    def fastest(self) -> float:
        """Largest size of a pole."""
        return float(np.abs(self.poles).max())

    @property
    def slowest(self) -> float:
        """Smallest size of a pole."""
        return float(np.abs(self.poles).min())

    def __call__(self, w: Array) -> ComplexArray:
        """M (K, r, r) at frequencies w (K,), in the units of A, infinity allowed."""
        w = np.atleast_1d(np.asarray(w, dtype=float))
        finite, (N, r) = np.isfinite(w), self.right.shape
        M = np.empty((len(w), *self.D.shape), dtype=complex)
        M[:] = self.D
        seen = self._states(1j * w[finite]).reshape(-1, N) @ self.left.T
        M[finite] += seen.reshape(-1, r, len(self.D)).transpose(0, 2, 1)
        return M

    def _states(self, s: ComplexArray) -> ComplexArray:
        """(s - T)^-1 right, (K, r, N), at s (K,): for few s one by one, else row by row for all."""
        (N, r), away = self.right.shape, s[:, None] - self.poles
        if len(s) <= _FEW:
            X, shifted = np.empty((len(s), r, N), dtype=complex), np.array(-self.T, order="F")
            diagonal = np.einsum("ii->i", shifted)  # a view: only these entries depend on s
            for k, own in enumerate(away):
                diagonal[:] = own
                X[k] = _TRSM(1.0, shifted, self.right).T
            return X
        X, inverse = np.empty((N, len(s), r), dtype=complex), 1 / away.T
        rows = X.reshape(N, -1)
        for i in range(N - 1, -1, -1):
            known = (self.T[i, i + 1 :] @ rows[i + 1 :]).reshape(len(s), r)
            X[i] = (self.right[i] + known) * inverse[i][:, None]
        return X.transpose(1, 2, 0)


def frequency_response(loop: UncertainLoop) -> Response:
    """Prepare the frequency response M(jw) of an uncertain loop by a Schur form of balanced A."""
    _, (scale, _) = scipy.linalg.matrix_balance(loop.A, permute=False, separate=True)
    A = loop.A * scale / scale[:, None]
    U, V = loop.U / scale[:, None], loop.V * scale
    T, Q = scipy.linalg.schur(A, output="complex")[:2]
    return Response(A=A, U=U, V=V, D=loop.D, T=T, left=V @ Q, right=Q.conj().T @ U)
