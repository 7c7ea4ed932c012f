"""A loop broken at its actuators: loop gain and sensitivity of its channels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from flexctl import checks
from flexctl.checks import Array, ComplexArray
from flexctl.loop import LinearLoop, one_sample
from flexctl.robustness import Parameter, Response, UncertainLoop, bilinear, frequency_response


@dataclass(frozen=True, kw_only=True)
class BrokenLoop:
    """x' = A x + B w, u = C x, torques u + w: the closed loop with an input w at every actuator.

    The sensitivity is S = (I + L)^-1 = I + C (s - A)^-1 B with the loop gain L.  Only S is
    evaluated: its poles are those of the closed loop, none on the imaginary axis if that is stable,
    where L may have poles anywhere.

    Attributes
    ----------
    A, B, C
        Of the closed loop, (N, N), (N, m), (m, N); for a sampled one, its map over one sample.
    sample_time
        [s]; None for a continuous loop.
    """

    A: Array
    B: Array
    C: Array
    sample_time: float | None = None

    def __post_init__(self) -> None:
        n, m = self.B.shape
        checks.shape("A", self.A, (n, n))
        checks.shape("C", self.C, (m, n))

    @property
    def m(self) -> int:
        """Number of actuators."""
        return self.B.shape[1]

    def opened(self, channels: Sequence[int]) -> Array:
        """State matrix (N, N) with these channels open and the others closed."""
        own = list(channels)
        return self.A - self.B[:, own] @ self.C[own]

    @cached_property
    def gains(self) -> UncertainLoop:
        """The loop with an uncertain factor 1 + delta of every channel's gain, -1 < delta."""
        m, N = self.m, len(self.A)
        uncertain = UncertainLoop(
            A=self.A,
            U=self.B,
            V=self.C,
            D=np.zeros((m, m)),
            parameters=tuple(Parameter(name=f"{j}", size=1, lowest=-1.0) for j in range(m)),
            states=tuple(f"{k}" for k in range(N)),
        )
        return uncertain if self.sample_time is None else bilinear(uncertain, self.sample_time)

    @cached_property
    def _response(self) -> Response:
        return frequency_response(self.gains)

    @property
    def decays(self) -> bool:
        """Whether all computed poles of S are left of the axis."""
        return bool((self._response.poles.real < 0).all())

    @cached_property
    def speed(self) -> float:
        """Largest size of a rate [rad/s], the scale of rounding errors."""
        return float(np.abs(self.rates(self.A)).max(initial=0.0))

    def sensitivity(self, w: Array) -> ComplexArray:
        """S (K, m, m) at frequencies w (K,) [rad/s], for a sampled loop at exp(j w T)."""
        T = self.sample_time
        return np.eye(self.m) + self._response(w if T is None else np.tan(np.asarray(w) * T / 2))

    @property
    def fastest(self) -> float:
        """Nyquist frequency [rad/s] of a sampled loop; infinite for a continuous one."""
        return np.inf if self.sample_time is None else np.pi / self.sample_time

    def rates(self, A: Array) -> ComplexArray:
        """Eigenvalues of a state matrix [rad/s], for a sampled loop log(z)/T of multipliers z."""
        values = np.linalg.eigvals(A).astype(complex)
        if self.sample_time is None:
            return values
        alive = values[np.abs(values) > np.finfo(float).eps]
        return (np.log(alive) / self.sample_time).astype(complex)


def break_loop(loop: LinearLoop, delays: float | Array | None = None) -> BrokenLoop:
    """Break a linear loop at its actuators.

    A sampled loop is broken at the output of the law, before the delays: the design's own,
    or others, of all channels or of each (m,) [s].
    """
    if loop.sample_time is None:
        return BrokenLoop(A=loop.A + loop.B @ loop.K, B=loop.B, C=loop.K)
    T = loop.sample_time
    A, B = one_sample(loop, T, loop.delay if delays is None else delays)
    C = np.hstack([loop.K, np.zeros((len(loop.K), len(A) - loop.K.shape[1]))])
    return BrokenLoop(A=A + B @ C, B=B, C=C, sample_time=T)
