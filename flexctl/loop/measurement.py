"""Measurements of a truth plant by a controller of another order: ideal strain gauges.

Gauges at stated points x/l of every elastic line measure its curvature in each plane; the
controller's elastic coordinates are the least-squares fit of its own shapes' curvatures. An
external law measures named signals of the truth plant itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import casadi as ca
import numpy as np

from flexctl.body import Body, free_length, scales, spread
from flexctl.checks import Array
from flexctl.control import (
    TIP,
    Difference,
    Instrumentation,
    Reading,
    gauge_matrix,
    gauge_names,
    gauge_positions,
    plain_name,
    readings_at,
)
from flexctl.plant import Evaluator, Plant, eliminate

_CHECKED = 3  # lengths at which gauges are checked


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """Map from the truth plant's coordinates to the measurements of the law.

    Attributes
    ----------
    function
        CasADi function (q, v) of the truth plant -> (q, v) of the design plant; of an external law
        -> the positions that it measures and their rates (p,).
    gauges
        Positions x/l of the strain gauges by line, such as ``link2.y``; empty for full state.
    signals
        Names of the signals of the truth plant that an external law measures.
    fitted
        Instruments whose readings y (p,) without noise and delay the function gives in place of
        positions, and zeros in place of rates; None where there are none.
    state
        Ideal measurement of the design plant's state where the function gives readings.
    """

    function: ca.Function
    gauges: dict[str, tuple[float, ...]]
    signals: tuple[str, ...] = ()
    fitted: Instrumentation | None = None
    state: Measurement | None = None

    @cached_property
    def jacobian(self) -> ca.Function:
        """(q, v) of the truth plant -> derivative of the measurements by (q, v), (2n, 2N)."""
        n = self.function.numel_in(0)
        q, v = ca.SX.sym("q", n), ca.SX.sym("v", n)
        seen = ca.vertcat(*self.function(q, v))
        J = ca.densify(ca.jacobian(seen, ca.vertcat(q, v)))
        return ca.Function("measured", [q, v], [J])

    @cached_property
    def _evaluators(self) -> tuple[Evaluator, Evaluator]:
        return Evaluator(self.function), Evaluator(self.jacobian, matrix=True)

    def read(self, q: Array, v: Array) -> tuple[Array, Array]:
        """Measured positions and rates (n,) at q, v (N,) of the truth plant."""
        seen_q, seen_v = self._evaluators[0](q, v)
        return seen_q, seen_v

    def derivative(self, q: Array) -> Array:
        """Return the derivative (2n, 2N) of the measurements at rest by [q; v] of the truth."""
        return np.asarray(self._evaluators[1](q, np.zeros(len(q))))

    @property
    def assumption(self) -> str:
        """Description of the measurements, in a sentence."""
        if self.fitted:
            return describe_instruments(self.fitted)
        if self.signals:
            fit = f"; elastic coordinates by ideal strain gauges ({self._places})"
            measured = f"the controller measures {', '.join(self.signals)} exactly, without noise"
            return measured + (fit if self.gauges else "")
        if not self.gauges:
            return "the controller measures the truth plant's full state (same discretisation)"
        return (
            "the controller measures joints exactly, and links by a least-squares fit of its "
            f"shapes to ideal strain gauges and their rates ({self._places})"
        )

    @property
    def gauge_assumption(self) -> str:
        """Description of the strain gauges, in a sentence."""
        if not self.gauges:
            return "strain gauges give the links' coordinates exactly (same discretisation)"
        return f"strain gauges give the least-squares fit of the design's shapes ({self._places})"

    @property
    def _places(self) -> str:
        lines: dict[tuple[float, ...], list[str]] = {}
        for line, positions in self.gauges.items():
            lines.setdefault(positions, []).append(line)
        return "; ".join(
            f"{', '.join(names)} at x/l = " + ", ".join(f"{x:.3g}" for x in positions)
            for positions, names in lines.items()
        )


def make_measurement(
    design: Plant, truth: Plant, positions: tuple[float, ...] | None = None
) -> Measurement:
    """Build the measurement of a truth plant for a controller made on a design plant.

    Gauges are at `positions` x/l of every line; by default the full state is measured where both
    plants have the same shapes, else `gauge_positions` of the design's are used. Raises InputError
    when there are too few gauges, or gauges where the design's shapes have no curvature.
    """
    q, v = ca.SX.sym("q", truth.n), ca.SX.sym("v", truth.n)
    alike = design.coordinates == truth.coordinates and _same_shapes(design, truth)
    if positions is None and alike:
        return Measurement(function=ca.Function("measure", [q, v], [q, v]), gauges={})
    start = truth.rigid
    parts, gauges = [q[:start]], {}
    for j, (seen, real) in enumerate(zip(design.bodies, truth.bodies, strict=True)):
        for direction in seen.planes:
            line = f"{seen.link.name}.{direction}"
            count = len(real.names(direction))
            gauges[line] = positions or _gauges(seen, direction)
            fit = _fit_followed if direction in seen.mixes else _fit
            gauging = _Gauging(
                seen=seen, real=real, direction=direction, positions=gauges[line], joint=q[j]
            )
            parts.append(fit(gauging, q[start:][:count]))
            start += count
    seen_q = ca.vertcat(*parts)
    function = ca.Function("measure", [q, v], [seen_q, ca.jtimes(seen_q, q, v)])
    return Measurement(function=function, gauges=gauges)


def measure_signals(
    names: tuple[str, ...], design: Plant, truth: Plant, positions: tuple[float, ...] | None = None
) -> Measurement:
    """Build the measurement of named positions (p,) of a truth plant, see `measurable`.

    They depend on the truth plant only, except elastic coordinates of the design plant, which are
    measured as by `make_measurement` (with its errors). `positions` are those of gauges.
    """
    q, v = ca.SX.sym("q", truth.n), ca.SX.sym("v", truth.n)
    own = _own_signals(truth, q, positions)
    elastic = [plain_name(name) for name in design.coordinates]
    fit = None if set(names) <= set(own) else make_measurement(design, truth, positions)
    fitted = fit.function(q, v)[0] if fit else q
    seen = ca.vertcat(*(own[k] if k in own else fitted[elastic.index(k)] for k in names))
    function = ca.Function("measure", [q, v], [seen, ca.jtimes(seen, q, v)])
    return Measurement(function=function, gauges=fit.gauges if fit else {}, signals=names)


def measure_instruments(
    fitted: Instrumentation, design: Plant, truth: Plant, state: Measurement | None = None
) -> Measurement:
    """Build the readings of instruments of a truth plant, see `Instrumentation`.

    They depend on the truth plant only; its numbers are constants in them. `state` is the ideal
    measurement of the design plant's state where it is known already.
    """
    own = truth.folded if fitted.reads_torques else truth
    q, v = ca.SX.sym("q", truth.n), ca.SX.sym("v", truth.n)
    y = readings_at(own, fitted.readings, q, v)
    function = ca.Function("measure", [q, v], [y, ca.SX.zeros(len(fitted.readings))])
    state = state or make_measurement(design, truth)
    return Measurement(function=function, gauges={}, fitted=fitted, state=state)


def describe_instruments(fitted: Instrumentation) -> str:
    """Describe the readings that a law gets, in a sentence."""
    rates = [_differenced(one) for one in fitted.differences]
    told = "the controller reads " + "; ".join([*map(_described, fitted.readings), *rates])
    for what, joints in (("position", fitted.link_angles), ("rate", fitted.link_rates)):
        if joints:
            told += f"; {what} loops close at the links, not the motors, of {', '.join(joints)}"
    return told + ("; runs are without noise" if any(map(_left_out, fitted.readings)) else "")


def _differenced(one: Difference) -> str:
    T = one.time_constant
    return f"the difference of {one.place}" + (f" filtered by {T:.3g} s" if T else "")


def _left_out(one: Reading) -> bool:
    """Whether runs leave out the noise of a reading, as those of continuous laws do."""
    return bool(one.density) and not one.deviation


def _described(one: Reading) -> str:
    steps = f" in steps of {one.resolution:.3g} {one.unit}" if one.resolution else ""
    noise = f" with noise of {one.deviation:.3g} {one.unit} rms" if one.deviation else ""
    if _left_out(one):
        noise = f" with noise of {one.density:.3g} {one.unit}/sqrt(Hz)"
    late = f", {one.late} sample{'s' * (one.late != 1)} late" if one.late else ""
    rare = f", taken at every {_ordinal(one.every)} sample" if one.every > 1 else ""
    return f"the {one.name}{steps}{noise}{rare}{late}"


def _ordinal(n: int) -> str:
    """Return a number of two or more as a word with digits, such as 3rd."""
    last = "th" if n // 10 % 10 == 1 else {1: "st", 2: "nd", 3: "rd"}.get(n % 10, "th")
    return f"{n}{last}"


def _own_signals(truth: Plant, q: ca.SX, positions: tuple[float, ...] | None) -> dict[str, ca.SX]:
    """Positions of the truth plant by name: joints, rotors, tip, ends of lines, gauges."""
    rigid = (*truth.joints, *truth.rotors)
    signals = {name: q[k] for k, name in enumerate(rigid)}
    tip = truth.casadi_functions["tip"](q, *truth.free_input)
    signals |= {name: tip[k] for k, name in enumerate(TIP)}
    ends = truth.casadi_functions["deflections"](q, *truth.free_input)[0]
    signals |= {plain_name(line): ends[k] for k, line in enumerate(truth.lines)}
    if positions is None:
        return signals
    start = truth.rigid
    for j, body in enumerate(truth.bodies):
        for direction in body.planes:
            line, count = f"{body.link.name}.{direction}", len(body.names(direction))
            length = free_length(body, q[j])
            bent = spread(body, direction, length) @ q[start:][:count] / length**2
            C = body.planes[direction].bending(np.array(positions)).T
            curvature = ca.sparsify(ca.DM(C)) @ bent
            names = gauge_names(line, positions)
            signals |= {name: curvature[k] for k, name in enumerate(names)}
            start += count
    return signals


def _same_shapes(design: Plant, truth: Plant) -> bool:
    """Whether equal coordinates also mean equal shapes (tip loads move modes)."""
    xi = np.linspace(0.1, 1.0, 7)
    for bodies in zip(design.bodies, truth.bodies, strict=True):
        for direction in bodies[0].planes:
            own, other = (body.mixes.get(direction) for body in bodies)
            if own is not other:  # modes of one link on one range are fitted once
                return False
            curvatures = (body.planes[direction].bending(xi) for body in bodies)
            if own is None and not np.allclose(*curvatures, rtol=1e-9):
                return False
    return True


@dataclass(frozen=True, kw_only=True)
class _Gauging:
    """A line in the design and in the truth plant, with its gauges, at a joint's variable."""

    seen: Body
    real: Body
    direction: str
    positions: tuple[float, ...]
    joint: ca.SX

    @property
    def line(self) -> str:
        return f"{self.seen.link.name}.{self.direction}"

    @property
    def lengths(self) -> tuple[ca.SX, ca.SX]:
        """Free lengths [m] in the design and in the truth plant."""
        return free_length(self.seen, self.joint), free_length(self.real, self.joint)

    def scaled(self, F: Array, d: ca.SX) -> ca.SX:
        """F (k, n_real) of the truth's coordinates: (l_seen / l_real)^2 F S_real d.

        Gauges measure the curvature d2w/dx2 = psi'' delta / l^2, each with its own length.
        """
        own, actual = self.lengths
        S = spread(self.real, self.direction, actual)
        return ca.sparsify(ca.DM(F)) @ (S @ d) * (own / actual) ** 2

    def curvature(self, body: Body) -> Array:
        """Curvatures psi'' (gauges, k) of the shapes in one plane of a body."""
        return body.planes[self.direction].bending(np.array(self.positions)).T


def _gauges(seen: Body, direction: str) -> tuple[float, ...]:
    """Default gauges for the design's coordinates, at one of its lengths."""
    mixed = seen.mixes.get(direction)
    return gauge_positions(mixed.at(mixed.longest) if mixed else seen.planes[direction])


def _fit(gauging: _Gauging, d: ca.SX) -> ca.SX:
    """Coordinates of the design's shapes, fitted by least squares: S_seen^-1 F S_real d."""
    shapes = gauging.seen.planes[gauging.direction]
    C = gauge_matrix(shapes, gauging.positions, gauging.line)
    F = np.linalg.lstsq(C, gauging.curvature(gauging.real), rcond=None)[0]
    return gauging.scaled(F, d) / scales(shapes, gauging.lengths[0])


def _fit_followed(gauging: _Gauging, d: ca.SX) -> ca.SX:
    """Coordinates of modes that follow the length, by normal equations at every length.

    With A = psi_base'' S(l): (A'A) d_seen = A' psi_real'' S_real d.  Curvatures of modes are nearly
    orthogonal at gauges that `gauge_matrix` accepts, so squaring them loses little.
    """
    mixed = gauging.seen.mixes[gauging.direction]
    for length in np.geomspace(mixed.shortest, mixed.longest, _CHECKED):
        gauge_matrix(mixed.at(length), gauging.positions, gauging.line)
    base = gauging.curvature(gauging.seen)
    S = spread(gauging.seen, gauging.direction, gauging.lengths[0])
    A = S.T @ ca.DM(base.T @ base) @ S
    b = S.T @ gauging.scaled(base.T @ gauging.curvature(gauging.real), d)
    eliminated = eliminate(A, {i: str(i) for i in range(A.shape[0])})
    return eliminated.solve(eliminated.reduce(-b), b)
