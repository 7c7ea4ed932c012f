"""A reference motion convolved with the impulses of an input shaper."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import casadi as ca
import numpy as np

from flexctl.checks import Array
from flexctl.control.input_shaper import InputShaper, make_shaper
from flexctl.control.reference import POSITION, THIRD, ReferenceMotion, reference_function, stepped
from flexctl.control.second_loop import passive_rows
from flexctl.errors import InputError
from flexctl.model import Design, Shaper, refuse
from flexctl.plant import Plant, linearise

_SAME = 1e-9  # of the last one: closer times are one
_TOLERANCE = 0.05  # of an EI shaper where the file gives none


def shape_reference(motion: ReferenceMotion, design: Design, plant: Plant) -> ReferenceMotion:
    """Shape the motion of a design by its reference.shaper; the motion itself where it has none.

    Raises
    ------
    InputError
        When the design plant has no such mode, or it needs no shaper.
    """
    choice = design.reference.shaper
    if choice is None:
        return motion
    frequencies, ratios = _modes(choice, design, plant, motion.final)
    try:
        shaper = make_shaper(choice.kind, frequencies, ratios, choice.tolerance or _TOLERANCE)
    except InputError as error:
        raise InputError(f"{design.label}: {error}") from error
    return convolve(motion, shaper, jumps=design.reference.kind == "setpoint")


def _modes(
    choice: Shaper, design: Design, plant: Plant, joints: Array
) -> tuple[list[float], list[float]]:
    """Frequencies [rad/s] and damping ratios of the modes to cancel."""
    given = choice.damping_ratio or (0.0,)
    ratios = np.broadcast_to(given, len(choice.frequency)).tolist()
    found = held_modes(plant, joints) if any(map(choice.names_mode, choice.frequency)) else []
    pairs = []
    for entry, ratio in zip(choice.frequency, ratios, strict=True):
        number = choice.names_mode(entry)
        if number is None:
            pairs.append((float(entry), ratio))
            continue
        if number > len(found):
            expected = f"one of the {len(found)} modes of {plant.arm.name} with its drives held"
            raise refuse(design.label, "reference.shaper.frequency", expected=expected, got=entry)
        pairs.append(found[number - 1])
    return [w for w, _ in pairs], [ratio for _, ratio in pairs]


def held_modes(plant: Plant, joints: Array) -> list[tuple[float, float]]:
    """Frequencies [rad/s], ascending, and damping ratios of what vibrates with the drives held.

    These are the rows of q without a torque, at joints (m,): bending, and links behind springs.
    Where the joint loop is stiff, or its model cancels the reaction of the links, as decoupling
    does, they are the poles that ring in the closed loop.
    """
    linear = linearise(plant, plant.straight(joints))
    f = passive_rows(plant.n, plant.drives)
    M, D, K = (A[np.ix_(f, f)] for A in (linear.M, linear.D, linear.K))
    if not f:
        return []
    below = -np.linalg.solve(M, np.hstack([K, D]))
    poles = np.linalg.eigvals(np.vstack([np.eye(len(f), 2 * len(f), len(f)), below]))
    ringing = sorted((abs(pole), -pole.real / abs(pole)) for pole in poles if pole.imag > 0)
    return [(float(w), max(float(ratio), 0.0)) for w, ratio in ringing]


def convolve(motion: ReferenceMotion, shaper: InputShaper, *, jumps: bool) -> ReferenceMotion:
    """Convolve a motion with impulses: sum A_i r(t - t_i), and so its rate and acceleration.

    Before time 0 the motion rests at its start. `jumps`: the position jumps to the end at time 0;
    it then becomes a staircase.
    """
    breaks = _breaks(motion, shaper)
    before, after = _steps_of(motion, jumps=jumps)
    steps = None if after is None else _steps(motion, shaper, breaks, before, after)
    n_breaks = 0 if steps is None else len(breaks)
    which = POSITION if jumps else THIRD
    function = _shaped_function(motion, len(shaper.times), n_breaks, which)
    own = [] if steps is None else [breaks, steps.ravel(order="F")]
    numbers = np.concatenate([motion.numbers, shaper.amplitudes, shaper.times, *own])
    shaped = replace(
        motion,
        function=function,
        duration=motion.duration + float(shaper.times[-1]),
        breaks=tuple(breaks.tolist()),
        steps=steps,
        stepped=which,
        numbers=numbers,
        shaper=shaper,
    )
    if motion.rests:
        return shaped
    return replace(shaped, final=shaped.sample(np.array([shaped.duration]))[0].ravel())


def _breaks(motion: ReferenceMotion, shaper: InputShaper) -> Array:
    """Return the times (K,) [s] above 0 at which its parts start or are not smooth."""
    all_times = np.add.outer(shaper.times, [0.0, *motion.breaks]).ravel()
    times, last = np.sort(all_times), float(all_times.max(initial=0.0))
    apart = np.diff(times, prepend=0.0) > _SAME * last
    return times[apart]


def _steps_of(
    motion: ReferenceMotion, *, jumps: bool
) -> tuple[Array, Callable[[float], Array] | None]:
    """Return what jumps in a motion before time 0, (m,), and as a function of time after it."""
    if jumps:
        return motion.start, lambda _t: motion.final
    if motion.steps is None:
        return motion.start, None
    steps = motion.steps
    return np.zeros(len(motion.start)), lambda t: steps[:, motion.passed(t)]


def _steps(
    motion: ReferenceMotion,
    shaper: InputShaper,
    breaks: Array,
    before: Array,
    after: Callable[[float], Array],
) -> Array:
    """Values (m, K + 1) before, between and after the breaks (K,), taken halfway between them."""
    ends = np.array([0.0, *breaks, breaks[-1] + 1.0]) if len(breaks) else np.array([0.0, 1.0])
    values = np.zeros((len(motion.start), len(breaks) + 1))
    for k, t in enumerate(((ends[:-1] + ends[1:]) / 2).tolist()):
        for A, at in zip(shaper.amplitudes.tolist(), shaper.times.tolist(), strict=True):
            values[:, k] += A * (after(t - at) if t > at else before)
    return values


def _shaped_function(motion: ReferenceMotion, count: int, n_breaks: int, which: int) -> ca.Function:
    """Make the function (t, [numbers; A; t_i; breaks; steps]) of a motion of `count` parts."""
    m, t = len(motion.start), ca.MX.sym("t")
    sizes = [len(motion.numbers), count, count, n_breaks, m * (n_breaks + 1) if n_breaks else 0]
    numbers = ca.MX.sym("numbers", sum(sizes))
    own, A, at, breaks, steps = ca.vertsplit(numbers, np.cumsum([0, *sizes]).tolist())
    parts = [ca.MX.zeros(m)] * 3
    for k in range(count):
        since = t - at[k]
        moved = motion.function(ca.fmax(since, 0), *([own] if own.numel() else []))
        begun = A[k] * (since >= 0)
        parts = [x + a * y for x, a, y in zip(parts, (A[k], begun, begun), moved, strict=True)]
    if n_breaks:
        over = [t >= b for b in ca.vertsplit(breaks)]
        parts[which] = stepped(ca.reshape(steps, m, n_breaks + 1), over)
    return reference_function(t, *parts, numbers=numbers)
