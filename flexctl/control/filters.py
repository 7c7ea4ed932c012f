"""Filters in series between a law and the limits of its torques."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import casadi as ca
import numpy as np

from flexctl.checks import Array
from flexctl.control.followed_frequency import followed_frequency
from flexctl.control.laws import LawParts, Recipe, Signals, law_function, law_key
from flexctl.control.linear_part import (
    LinearPart,
    in_series,
    part_response,
    timed,
    tustin_words,
)
from flexctl.control.path_schedule import (
    PathTable,
    path_numbers,
    path_parameter,
    table_numbers,
    table_of,
    table_value,
)
from flexctl.control.reference import ReferenceMotion
from flexctl.model import Design, Filter
from flexctl.plant import Plant


def filter_part(one: Filter) -> LinearPart:
    """Return a filter with its frequency at 1 rad/s; see `Filter` for its transfer function."""
    if one.kind == "lead":
        root, C = one.lead_ratio**0.5, np.array([1 - one.lead_ratio])
        return LinearPart(A=np.array([[-root]]), B=np.array([root]), C=C, D=one.lead_ratio)
    if one.kind == "notch":
        zero, pole = one.notch_damping
        C = np.array([0.0, 2 * (zero - pole)])
        return replace(second_order(pole), C=C, D=1.0)
    n = one.states
    if one.kind == "low-pass":
        return second_order(one.damping) if n == 2 else _first_order()
    pairs = [second_order(np.sin((2 * k + 1) * np.pi / (2 * n))) for k in range(n // 2)]
    return reduce(in_series, [*pairs, *[_first_order()] * (n % 2)])


def _first_order() -> LinearPart:
    """1/(1 + s)."""
    return LinearPart(A=np.array([[-1.0]]), B=np.ones(1), C=np.ones(1))


def second_order(damping: float) -> LinearPart:
    """1/(1 + 2 zeta s + s^2), its state being the output and its rate."""
    A = np.array([[0.0, 1.0], [-1.0, -2 * damping]])
    return LinearPart(A=A, B=np.array([0.0, 1.0]), C=np.array([1.0, 0.0]))


@dataclass(frozen=True, kw_only=True)
class _Channel:
    """A filter at one joint, as the law has it."""

    joint: int
    part: LinearPart  # at 1 rad/s
    rate: PathTable  # N over the path parameter
    read: PathTable  # R
    frequency: PathTable  # [rad/s]

    def numbers(self, name: str) -> dict[str, Array]:
        """Numbers of the law."""
        return table_numbers(f"{name}.N", self.rate) | table_numbers(f"{name}.R", self.read)


def filtered_law(
    plant: Plant, parts: LawParts, design: Design, reference: ReferenceMotion
) -> LawParts:
    """Put the filters of a design behind its law: their states follow those of the law.

    They act on all of the law's torque, with what is fed forward, as filters of a drive's command
    do: their gain at rest is 1.

    Raises
    ------
    InputError
        When a frequency is that of an unknown mode, or above the Nyquist frequency.
    DesignError
        When a followed frequency does not vary smoothly along the path.
    """
    filters = [
        [_channel(plant, design, reference, k, j) for j in filtered_joints(one, plant.m)]
        for k, one in enumerate(design.filters)
    ]
    named = {f"filter{k}.{c.joint}": c for k, channels in enumerate(filters) for c in channels}
    follows = any(one.follows for one in design.filters)
    series = _Series(parts=parts, channels=named, follows=follows)
    law, n_own = parts.law, series.n_own
    numbers = dict(law.numbers) if isinstance(law, Recipe) else {}
    for name, channel in named.items():
        numbers |= channel.numbers(name)
    if follows:
        numbers |= {f"filters.{key}": x for key, x in path_numbers(reference).items()}
    recipe = Recipe(
        write=series.write,
        numbers=numbers,
        integral=parts.external is None and parts.n_state > len(parts.own_states),
        n_own=n_own + len(parts.own_states),
        structure=("filtered", law_key(law, plant), parts.n_state, series.shapes),
    )
    names = [
        f"{one.kind} filter of {plant.joints[channel.joint]}"
        for one, channels in zip(design.filters, filters, strict=True)
        for channel in channels
        for _ in range(one.states)
    ]
    return replace(
        parts,
        law=recipe,
        n_state=parts.n_state + n_own,
        own_states=(*parts.own_states, *names),
        assumptions=(*parts.assumptions, *_sentences(plant, design, filters)),
    )


@dataclass(frozen=True, kw_only=True)
class _Series:
    """A law and the filters behind it, by the names of their numbers."""

    parts: LawParts
    channels: Mapping[str, _Channel]
    follows: bool  # whether a frequency follows the path

    @property
    def n_own(self) -> int:
        """Number of states of the filters."""
        return sum(len(channel.part.A) for channel in self.channels.values())

    @property
    def shapes(self) -> list[tuple[int, Any, int]]:
        """What else the law depends on, as plain values."""
        own = self.channels.values()
        return [(c.joint, c.part.rest.tolist(), len(c.rate.coefficients)) for c in own]

    def write(self, plant: Plant, signals: Signals) -> ca.Function:
        """Write the law with its filters down."""
        signals, x = _sized(signals, self.parts, self.n_own), signals.numbers
        n = self.parts.n_state
        tau, moved = self._unfiltered(plant, signals, signals.z[:n, 0])
        p = ca.SX(0)
        if self.follows:
            p = path_parameter(signals.q_d, {k: x[f"filters.{k}"] for k in ("start", "along")})
        torque, rates, done = ca.vertsplit(tau), [moved], n
        for name, channel in self.channels.items():
            k, j = len(channel.part.A), channel.joint
            N, R = (table_value(f"{name}.{key}", x, p) for key in "NR")
            own, rest = signals.z[done : done + k, 0], channel.part.rest
            torque[j], rate = part_response(own, torque[j], N, R, rest, 1.0)
            rates.append(rate)
            done += k
        return law_function(signals.inputs, ca.vertcat(*torque), ca.vertcat(*rates))

    def _unfiltered(self, plant: Plant, signals: Signals, z: ca.SX) -> tuple[ca.SX, ca.SX]:
        """Torques (m, 1) of the law, and rates of its states z."""
        law = self.parts.law
        inside = replace(signals, z=z, n_own=len(self.parts.own_states))
        inner = law.write(plant, inside) if isinstance(law, Recipe) else law
        last = inside.inputs[7:] if isinstance(law, Recipe) else plant.free_input
        given = [signals.s, z, signals.q_d, signals.v_d, signals.a_d, signals.q, signals.v]
        tau, moved = inner.call([*given, *last][: inner.n_in()])
        return tau, moved


def _sized(signals: Signals, parts: LawParts, n_own: int) -> Signals:
    """Signals of the law with filters: those of an external law are its measurements."""
    if parts.external is None:
        return signals
    p = len(parts.external.measures)
    z = ca.SX.sym("z", parts.n_state + n_own)
    return replace(signals, z=z, q=ca.SX.sym("y", p), v=ca.SX.sym("y_rate", p))


def filtered_joints(one: Filter, m: int) -> list[int]:
    """Joints that a filter acts on."""
    return list(range(m)) if one.joint is None else [int(one.joint.removeprefix("joint")) - 1]


def _channel(
    plant: Plant, design: Design, reference: ReferenceMotion, k: int, joint: int
) -> _Channel:
    """Discretise filter k of a design at a joint, where it follows a mode all along the path."""
    one, part = design.filters[k], filter_part(design.filters[k])
    if one.follows:
        frequency = followed_frequency(plant.nominal, design, reference, k, joint)
    else:
        frequency = PathTable(coefficients=np.array([one.frequency], dtype=float))

    def at(share: float) -> tuple[Array, Array]:
        return timed(part.faster(float(frequency.at(share))), design.loop)

    count = len(frequency.coefficients)
    tables = (
        table_of(lambda share, i=i: at(share)[i], count, checked=False)
        if count > 1
        else PathTable(coefficients=at(1.0)[i][None])
        for i in range(2)
    )
    rate, read = tables
    return _Channel(joint=joint, part=part, rate=rate, read=read, frequency=frequency)


def _sentences(plant: Plant, design: Design, filters: list[list[_Channel]]) -> Iterator[str]:
    """Assumptions: what the filters are, where they act, and how they are discretised."""
    words = [
        _words(plant, one, channels) for one, channels in zip(design.filters, filters, strict=True)
    ]
    yield (
        "filters act on the whole torque of the law, with what is fed forward, before its limits, "
        f"each with gain 1 at rest: {'; '.join(words)}"
    )
    if not design.loop.sample_time:
        return
    if design.loop.discretisation == "exact":
        yield "each filter is discretised exactly, its input held over a sample"
        return
    yield f"each filter is discretised by Tustin's rule, {tustin_words(design.loop)}"


def _words(plant: Plant, one: Filter, channels: list[_Channel]) -> str:
    """Name a filter, its frequency and its joints."""
    where = "all joints" if one.joint is None else one.joint
    order = f" of order {one.states}" if one.kind in ("low-pass", "roll-off") else ""
    if not one.follows:
        return f"{one.kind}{order} at {one.frequency:g} rad/s ({where})"
    held = "all motors held" if one.held == "all" else "the other motors held"
    ranges = (
        f"{plant.joints[c.joint]} {c.frequency.at(0.0):.4g} to {c.frequency.at(1.0):.4g} rad/s"
        for c in channels
    )
    return f"{one.kind}{order} at {one.frequency} along the path, {held} ({', '.join(ranges)})"
