"""Reference motions of the joints as CasADi functions of time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import casadi as ca
import numpy as np

from flexctl import checks
from flexctl.checks import Array
from flexctl.control.input_shaper import InputShaper
from flexctl.model import Design, Reference, Samples, reference_samples

POSITION, THIRD = 0, 2  # results of the function of a motion: what may jump
_DEGREE = 5  # of the spline through samples: its accelerations are smooth


@dataclass(frozen=True, kw_only=True)
class ReferenceMotion:
    """Desired joint variables and their derivatives, or torques.

    Attributes
    ----------
    function
        CasADi function t [s] -> (q_d, v_d, a_d), each (m, 1) [rad or m, per s, per s^2]. For
        torques the third is the torque [N m, N], or command of a motor [A, V], and the desired
        joints are the initial ones. `numbers`, if there are any, are its second input.
    duration
        End of the gross motion [s]; afterwards the reference rests or continues at a constant rate.
    start, final
        Joint variables (m,) at time 0 and at `duration`.
    rests
        Whether the joints stay at `final` from `duration` on.
    breaks
        Times [s] up to `duration` at which the motion of some joint is not smooth.
    steps
        What jumps at the K `breaks`, (m, K + 1) before, between and after them; None if nothing
        does.
    stepped
        Which result of `function` that is: the third, or of a staircase the position, 0.
    torque
        Whether the reference is torques, not a motion.
    numbers
        Ends, durations and rates (k,): motions that differ in them only share their function.
    shaper
        Impulses that it was convolved with; None for a motion as it was asked for.
    contradictions
        Columns of a recorded motion that contradict others, a clause each.
    """

    function: ca.Function
    duration: float
    start: Array
    final: Array
    rests: bool = True
    breaks: tuple[float, ...] = ()
    steps: Array | None = None
    stepped: int = THIRD
    torque: bool = False
    numbers: Array = field(default_factory=lambda: np.zeros(0))
    shaper: InputShaper | None = None
    contradictions: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        checks.shape("final", self.final, self.start.shape)
        if self.steps is not None:
            checks.shape("steps", self.steps, (len(self.start), len(self.breaks) + 1))

    @property
    def usual_run(self) -> float:
        """Length of a run [s] where a design says nothing: the motion and 0.5 s."""
        return self.duration + 0.5

    def passed(self, t: float) -> int:
        """Count the breaks up to time t [s] at which a result jumps."""
        return 0 if self.steps is None else sum(at <= t for at in self.breaks)

    def after(self, passed: ca.MX, results: Sequence[ca.MX], steps: ca.MX) -> list[ca.MX]:
        """Results (m, 1) each after `passed` breaks: what jumps is taken from the `steps`.

        An integrator that ends a step at a jump needs the value before the jump.
        """
        values = list(results)
        if self.steps is not None:
            over = [passed > k + 0.5 for k in range(len(self.breaks))]
            values[self.stepped] = ca.densify(ca.MX(stepped(steps, over)))
        return values

    def sample(self, t: Array) -> tuple[Array, Array, Array]:
        """Desired positions, rates and accelerations (or torques) at times t (N,), each (m, N)."""
        mapped, N = self.function.map(len(t)), len(t)
        numbers = [np.tile(self.numbers[:, None], N)] if len(self.numbers) else []
        position, rate, acceleration = mapped(np.asarray(t)[None, :], *numbers)
        return np.array(position), np.array(rate), np.array(acceleration)


def make_reference(design: Design) -> ReferenceMotion:
    """Build the reference motion of a design file, before it is shaped: see `shape_reference`.

    Raises
    ------
    InputError
        When a csv file cannot be read or does not hold a motion.
    """
    if design.reference.motion is not None:
        return design.reference.motion
    if design.reference_file is not None:
        return _from_samples(reference_samples(design))
    reference = design.reference
    start, durations = np.array(reference.from_, dtype=float), np.array(reference.durations)
    durations = np.broadcast_to(durations, start.shape)
    if reference.kind == "bang-bang":
        return _bang_bang(reference, start)
    end, final = float(durations.max()), np.array(reference.to or (), dtype=float)
    spins = reference.kind == "spin-up"
    way = np.array(reference.rate, dtype=float) if spins else final - start
    function = _smooth_function(reference.kind, len(start))
    numbers = np.concatenate([start, way, durations])
    return ReferenceMotion(
        function=function,
        duration=end,
        start=start,
        final=final if reference.to else np.array(function(end, numbers)[0]).ravel(),
        rests=reference.rests,
        breaks=tuple(sorted(set(reference.durations))),
        numbers=numbers,
    )


@cache
def _smooth_function(kind: str, m: int) -> ca.Function:
    """Make the function (t, [start; way or rate; durations]) of a motion of m joints."""
    t, (start, way, durations) = ca.SX.sym("t"), (ca.SX.sym(k, m) for k in "swd")
    if kind == "spin-up":
        motion = _spin_up(t, start, way, durations)
    elif kind == "setpoint":
        motion = start + way, ca.SX.zeros(m)
    else:
        motion = _profile(_PROFILES[kind], t, start, way, durations)
    return reference_function(t, *motion, numbers=ca.vertcat(start, way, durations))


def _spin_up(t: ca.SX, start: ca.SX, rate: ca.SX, durations: ca.SX) -> tuple[ca.SX, ca.SX]:
    """From rest to a steady rate W along W (t/T - sin(2 pi t/T)/(2 pi)). Source: [Kane87]."""
    # displacement W T of the profile's integral, then motion at a constant rate
    position, speed = _profile(_integrated_cycloid, t, start, rate * durations, durations)
    return position + rate * ca.fmax(t - durations, 0), speed


def _bang_bang(reference: Reference, start: Array) -> ReferenceMotion:
    """Constant accelerations +-4 (q_1 - q_0)/T^2, or torques, reversed at T/2."""
    durations, torque = np.array(reference.durations), reference.torque
    final = np.array(start if torque is not None else reference.to, dtype=float)
    size = np.array(torque) if torque is not None else 4 * (final - start) / durations**2
    breaks = np.unique([durations / 2, durations])
    begins = np.append(0.0, breaks)[:, None]
    signs = np.where(begins < durations / 2, 1.0, np.where(begins < durations, -1.0, 0.0))
    steps = (signs * size).T
    numbers = [start, final - start, durations, breaks, steps.ravel(order="F")]
    return ReferenceMotion(
        function=_stepped_function(len(start), len(breaks)),
        duration=float(durations.max()),
        start=start,
        final=final,
        rests=reference.rests,
        breaks=tuple(breaks.tolist()),
        steps=steps,
        torque=torque is not None,
        numbers=np.concatenate(numbers),
    )


@cache
def _stepped_function(m: int, count: int) -> ca.Function:
    """Make the function (t, [start; way; durations; breaks; steps]) with `count` breaks."""
    t, (start, way, durations) = ca.SX.sym("t"), (ca.SX.sym(k, m) for k in "swd")
    breaks, steps = ca.SX.sym("b", count), ca.SX.sym("a", m, count + 1)
    position, rate = _profile(_parabolas, t, start, way, durations)
    third = stepped(steps, [t >= at for at in ca.vertsplit(breaks)]) * (t >= 0)
    numbers = ca.vertcat(start, way, durations, breaks, ca.vec(steps))
    return reference_function(t, position, rate, third, numbers=numbers)


def stepped(steps: Any, over: Sequence[ca.SX | ca.MX]) -> Any:
    """First column of steps (m, K + 1) plus the increments of the breaks that are over."""
    changes = [steps[:, k + 1] - steps[:, k] for k in range(len(over))]
    return sum((c * o for c, o in zip(changes, over, strict=True)), steps[:, 0])


def _parabolas(s: ca.SX) -> ca.SX:
    """2 s^2 until 1/2 and 1 - 2 (1 - s)^2 from there: accelerations 4 and -4."""
    return 2 * s**2 - 4 * ca.fmax(s - 0.5, 0) ** 2


def _cycloid(s: ca.SX) -> ca.SX:
    """Return s - sin(2 pi s)/(2 pi): rate and acceleration vanish at both ends. Source: [TG95]."""
    return s - ca.sin(2 * ca.pi * s) / (2 * ca.pi)


def _quintic(s: ca.SX) -> ca.SX:
    """10 s^3 - 15 s^4 + 6 s^5: rate and acceleration vanish at both ends. Source: [SM02]."""
    return s**3 * (10 - 15 * s + 6 * s**2)


def _integrated_cycloid(s: ca.SX) -> ca.SX:
    """s^2/2 + (cos(2 pi s) - 1)/(4 pi^2): its rate is the cycloid, 0 at s = 0 and 1 at s = 1."""
    return s**2 / 2 + (ca.cos(2 * ca.pi * s) - 1) / (4 * ca.pi**2)


_PROFILES: dict[str, Callable[[ca.SX], ca.SX]] = {"cycloid": _cycloid, "quintic": _quintic}


def _profile(
    shape: Callable[[ca.SX], ca.SX], t: ca.SX, start: ca.SX, way: ca.SX, durations: ca.SX
) -> tuple[ca.SX, ca.SX]:
    """Position and rate (m, 1) of start + way shape(t/T), each joint with its own T.

    Outside [0, T] the position is constant and the rate is that of the shape at its end.
    """
    s = ca.SX.sym("s", start.numel())
    inside = ca.fmin(ca.fmax(t / durations, 0), 1)
    values = [shape(s), ca.jtimes(shape(s), s, ca.SX.ones(start.numel()))]
    value, slope = ca.substitute(values, [s], [inside])
    return start + way * value, (way / durations) * slope


def reference_function(
    t: Any, position: Any, rate: Any, third: Any = None, numbers: Any = None
) -> ca.Function:
    """Make the function of a reference of its results; the third is the acceleration by default."""
    third = ca.jacobian(rate, t) if third is None else third
    outputs = [ca.densify(part) for part in (position, rate, third)]
    inputs = {"t": t} if numbers is None else {"t": t, "numbers": numbers}
    names = list(inputs), ["q_d", "v_d", "a_d"]
    return ca.Function("reference", list(inputs.values()), outputs, *names)


def _from_samples(samples: Samples) -> ReferenceMotion:
    """Quintic spline through the samples of a csv file, at rest before and after.

    Rates and accelerations that the file has are splines of their own; accelerations that it has
    not are derivatives of the rates.
    """
    first, last = samples.t[0], samples.t[-1]
    t = ca.MX.sym("t")
    inside = ca.fmin(ca.fmax(t + first, first), last)
    position, speed, acceleration = _through(samples.t, samples.joint)(inside)
    speeds, accelerations = ca.vertsplit(speed), ca.vertsplit(acceleration)
    for j, rate in samples.rate.items():
        speeds[j], accelerations[j], _ = _through(samples.t, rate[None])(inside)
    for j, known in samples.acceleration.items():
        accelerations[j] = _through(samples.t, known[None])(inside)[0]
    speed, acceleration = ca.vertcat(*speeds), ca.vertcat(*accelerations)
    moving = ca.logic_and(t >= 0, t <= last - first)
    return ReferenceMotion(
        function=reference_function(t, position, speed * moving, acceleration * moving),
        duration=float(last - first),
        start=samples.joint[:, 0],
        final=samples.joint[:, -1],
        contradictions=tuple(samples.contradictions()),
    )


def _through(t: Array, values: Array) -> ca.Function:
    """Make t -> (q, q', q'') through values (k, N) at times (N,); if they are few, a polynomial."""
    if len(t) <= _DEGREE:
        return _polynomial(t, values)  # CasADi's splines of low degree have no second derivative
    s = ca.MX.sym("s")
    spline = ca.interpolant("spline", "bspline", [t], values.T.ravel(), {"degree": [_DEGREE]})
    value = spline(s)
    rate = ca.jacobian(value, s)
    return ca.Function("derivatives", [s], [value, rate, ca.jacobian(rate, s)])


def _polynomial(t: Array, values: Array) -> ca.Function:
    s = ca.SX.sym("s")
    middle, half = (t[0] + t[-1]) / 2, np.ptp(t) / 2
    coefficients = np.linalg.solve(np.vander((t - middle) / half), values.T)
    value = ca.SX.zeros(len(values))
    for row in coefficients:  # Horner, highest power first
        value = value * ((s - middle) / half) + ca.DM(row)
    rate = ca.jacobian(value, s)
    results = [ca.densify(part) for part in (value, rate, ca.jacobian(rate, s))]
    return ca.Function("derivatives", [s], results)
