"""Runs whose joints slip and stick: friction without smoothing, from one event to the next.

Every joint with dry friction slips one way or sticks. A slipping one feels g(v) against its
direction until its rate is zero; a sticking one does not move while the force lambda that holds it
is below F_s. Where rates are zero the accelerations minimise

    1/2 (a - a0)' M (a - a0) + sum F_j |a_j|,

a0 being those without friction of these joints: one problem with one solution, whatever sticks and
slips. Its dual has bounds alone: 1/2 lambda' W lambda - lambda' a0 for |lambda_j| <= F_j with W =
E' M^-1 E, and a = a0 - M^-1 E lambda. Joints with |lambda_j| = F_j slip. Source: [Moreau88].

A joint that comes to rest was slowed down, so that what holds it is below F_s: it never slips on in
the direction that it came from. Where integral action lets it creep towards rest for ever, rates
below the tolerance of the run reach zero by rounding, with a force of F_s but for rounding. Then it
sticks, and breaks away at a force so much above F_s.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy  # its integrators are loaded where they are used, which is rare

from flexctl.checks import Array
from flexctl.model import Friction
from flexctl.simulation.integrators import InitialValueProblem, Run, RunFailure, out_of_steps
from flexctl.simulation.right_hand_side import Signals, Stretch
from flexctl.simulation.scipy_sundials import (
    PER_STEP,
    SCIPY,
    room_of,
    scipy_failure,
    scipy_tolerances,
    solve_counted,
)

_BEYOND = 1e-9  # relative: of F_s, at which a joint breaks away
_MOST_BEYOND = 1e-3  # the same of a joint that crept to rest
_MOST_EVENTS = 100_000


@dataclass(frozen=True, kw_only=True)
class _Joint:
    """A joint that slips and sticks: its coordinate, and its friction in units of its side."""

    row: int
    data: Friction
    ratio: float

    @property
    def static(self) -> float:
        """Force [N m or N] up to which it sticks, on its coordinate."""
        return max(self.ratio * float(self.data.breakaway), 1e-12)

    def slipping(self, rate: float) -> float:
        """Force [N m or N] that opposes a rate of its coordinate."""
        return self.ratio * float(self.data.level(self.ratio * rate))


class Contact:
    """Right-hand side of a stretch with joints that slip (`way` -1 or 1) or stick (0).

    It has the part of `Stretch` from which signals are sampled.
    """

    def __init__(self, stretch: Stretch) -> None:
        """Begin with all joints at rest."""
        truth = stretch.loop.truth
        self.stretch, self.loop = stretch, stretch.loop
        self.n, self.n_z, self.n_w, self.m = stretch.n, stretch.n_z, stretch.n_w, stretch.m
        self.joints = []
        for j in truth.arm.sticking_joints:
            link = truth.arm.links[j]
            data = link.friction or Friction()
            row = truth.drives[j] if data.side == "motor" else j
            self.joints.append(_Joint(row=row, data=data, ratio=link.friction_ratio))
        self.rows = [joint.row for joint in self.joints]
        self.way = np.zeros(len(self.joints), dtype=int)
        self.beyond = np.full(len(self.joints), _BEYOND)

    def bristles(self, x: Array) -> list[Array]:
        """Results of the function of bristles, as those of the stretch."""
        return self.stretch.bristles(x)

    def _sliding(self, v: Array) -> Array:
        """Force (n,) of the joints that slip."""
        force = np.zeros(self.n)
        for joint, way in zip(self.joints, self.way, strict=True):
            force[joint.row] += way * joint.slipping(v[joint.row]) if way else 0.0
        return force

    def _free(self, t: float, x: Array) -> tuple[Array, Array, Array]:
        """Accelerations (n,) without the forces that hold joints, torques, rates of the law."""
        return self.stretch.pushed(t, x, self._sliding(x[self.n : 2 * self.n]))

    def _held(self, x: Array) -> tuple[Array, Array]:
        """Rows of the joints at rest, and M^-1 E of them (n, k)."""
        rows = [row for row, way in zip(self.rows, self.way, strict=True) if not way]
        M = self.loop.truth.mass_matrix(x[: self.n])
        return np.array(rows, dtype=int), np.linalg.solve(M, np.eye(self.n)[:, rows])

    def accelerations(self, t: float, x: Array) -> tuple[Array, Array, Array]:
        """Return a (n,), torques (m,) and integral rates (n_z,), with joints at rest held."""
        a, tau, z_rate = self._free(t, x)
        if self.way.all():
            return a, tau, z_rate
        rows, X = self._held(x)
        a = a - X @ np.linalg.solve(X[rows], a[rows])
        a[rows] = 0.0
        return a, tau, z_rate

    def rate(self, t: float, x: Array) -> Array:
        """dx/dt."""
        a, tau, z_rate = self.accelerations(t, x)
        v = x[self.n : 2 * self.n]
        return self.stretch.complete(x, a, tau, z_rate, float(v @ self._sliding(v)))

    def holding(self, t: float, x: Array) -> Array:
        """Return the forces (k,) that hold joints at rest; 0 of the others."""
        forces = np.zeros(len(self.joints))
        if self.way.all():
            return forces
        rows, X = self._held(x)
        forces[self.way == 0] = np.linalg.solve(X[rows], self._free(t, x)[0][rows])
        return forces

    def release(self, t: float, x: Array) -> None:
        """Find which of the joints at rest slip, and which way; the others stick."""
        still = np.flatnonzero(self.way == 0)
        if not len(still):
            return
        rows, X = self._held(x)
        crept = np.where(self.beyond[still] > _BEYOND, self.beyond[still], 0.0)
        limit = np.array([self.joints[k].static for k in still]) * (1 + crept)
        forces = _bounded(X[rows], self._free(t, x)[0][rows], limit)
        slips = np.abs(forces) >= limit * (1 - _BEYOND)
        self.way[still[slips]] = np.sign(forces[slips]).astype(int)

    def events(self) -> list[Callable[[float, Array], float]]:
        """Functions of (t, x) that fall through zero where a joint stops or breaks away."""
        found = []
        for k, joint in enumerate(self.joints):
            if self.way[k]:
                found.append(self._stops(joint.row, int(self.way[k])))
            else:
                found.append(self._breaks_away(k))
        for event in found:
            event.terminal, event.direction = True, -1
        return found

    def _stops(self, row: int, way: int) -> Callable[[float, Array], float]:
        return lambda _t, x: way * float(x[self.n + row])

    def _breaks_away(self, k: int) -> Callable[[float, Array], float]:
        limit = self.joints[k].static * (1 + self.beyond[k])
        return lambda t, x: limit - abs(float(self.holding(t, x)[k]))

    def settle(self, t: float, x: Array, which: list[int]) -> None:
        """Change the joints (indices) that an event concerns."""
        forces, before = self.holding(t, x), self.way.copy()
        for k in which:
            if before[k]:
                x[self.n + self.joints[k].row] = 0.0
                self.way[k], self.beyond[k] = 0, _BEYOND
            else:
                self.way[k] = int(np.sign(forces[k]))
        stopped, rest = [k for k in which if before[k]], self.way == 0
        self.release(t, x)
        while again := [
            k for k in stopped if self.way[k] == before[k] and self.beyond[k] < _MOST_BEYOND
        ]:
            self.way[rest] = 0
            self.beyond[again] *= 2
            self.release(t, x)


def _bounded(W: Array, a0: Array, limit: Array) -> Array:
    """Minimise 1/2 f' W f - f' a0 for |f| <= limit (k,), W (k, k) symmetric and definite."""
    L = np.linalg.cholesky((W + W.T) / 2)
    known = np.linalg.solve(L, a0)
    found = scipy.optimize.lsq_linear(L.T, known, bounds=(-limit, limit), method="bvls")
    return np.asarray(found.x)


def run_with_events(given: InitialValueProblem, name: str) -> Run | RunFailure:
    """Integrate a closed loop whose joints slip and stick, by a method of SciPy."""
    method, words = SCIPY[name]
    stretch = Stretch(given.loop, given.start[2])
    contact = Contact(stretch)
    signals = Signals(contact, given.times)
    q0, v0, _, z0 = given.start
    x = np.concatenate([q0, v0, z0, np.zeros(stretch.n_w + 2)])
    contact.way = np.sign(v0[contact.rows]).astype(int)
    options = {"method": method, **scipy_tolerances(stretch, given.tolerance)}
    counts = _Counts()
    if why := stretch.why_beyond(x):
        return RunFailure(time=given.events[0].time, why=why)
    for begin, end in stretch.spans(given.events, x, given.noise):
        contact.release(begin, x)
        failure = _integrate(contact, signals, x, (begin, end), options, counts, given)
        if failure:
            return failure
    own = f"{words} between the events of friction"
    return Run(
        steps=counts.steps,
        rejected=0,
        evaluations=counts.evaluations,
        integrator=own,
        **signals.all(),
    )


@dataclass
class _Counts:
    """Steps, evaluations and events of a run so far."""

    steps: int = 0
    evaluations: int = 0
    events: int = 0


def _integrate(
    contact: Contact,
    signals: Signals,
    x: Array,
    span: tuple[float, float],
    options: dict[str, Any],
    counts: _Counts,
    given: InitialValueProblem,
) -> RunFailure | None:
    """Integrate the state x in place from event to event of friction, to the end of a stretch."""
    t, end = span
    stretch = contact.stretch

    room, most = room_of(stretch), given.tolerance.max_steps
    while t < end:
        events = contact.events()
        options["events"] = [*events, room]
        left = PER_STEP * most - counts.evaluations
        done = solve_counted(contact.rate, (t, end), x, options, left)
        if failure := scipy_failure(stretch, done, t, most):
            return failure
        counts.steps += len(done.t) - 1
        counts.evaluations += done.nfev
        signals.fill(t, float(done.t[-1]), done.sol)
        x[:], t = done.y[:, -1], float(done.t[-1])
        which = [k for k in range(len(events)) if len(done.t_events[k])]
        if which:
            counts.events += 1
            contact.settle(t, x, which)
        if counts.events > _MOST_EVENTS or counts.steps > most:
            return RunFailure(time=t, why=out_of_steps(most), numerical=True, exhausted=True)
    return None
