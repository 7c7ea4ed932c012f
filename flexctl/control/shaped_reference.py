"""A reference motion convolved with the impulses of an input shaper."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache

import casadi as ca
import numpy as np

from flexctl.checks import Array
from flexctl.control.input_shaper import InputShaper, make_shaper
from flexctl.control.reference import POSITION, THIRD, ReferenceMotion, reference_function, stepped
from flexctl.control.second_loop import passive_rows
from flexctl.errors import InputError
from flexctl.model import Design, Shaper, refuse
from flexctl.plant import LinearPlant, Plant, linearise

Mode = tuple[float, float]  # undamped frequency [rad/s] and damping ratio [-]
Slopes = tuple[Array, ...]  # of a law, see `Controller.law_jacobian`

_SAME = 1e-9  # of the last one: closer times are one
_RINGS = 0.5  # damping ratio above which nothing needs a shaper
_ROUND_OFF = 1e-9  # of a damping ratio of zero
_TOLERANCE = 0.05  # of an EI shaper where the file gives none


def shape_reference(
    motion: ReferenceMotion, design: Design, plant: Plant, slopes: Callable[[], Slopes]
) -> ReferenceMotion:
    """Shape the motion of a design by its reference.shaper; the motion itself where it has none.

    `slopes` gives those of the law at the end of the gross motion, called for modes of the loop.

    Raises
    ------
    InputError
        When the design plant or its loop has no such mode, or it needs no shaper.
    """
    choice = design.reference.shaper
    if choice is None:
        return motion
    linear = cache(lambda: linearise(plant, plant.straight(motion.final)))
    modes = {
        "mode": cache(lambda: held_modes(linear(), plant.drives)),
        "loop": cache(lambda: loop_modes(linear(), slopes())),
    }
    frequencies, ratios = _frequencies(choice, design, modes)
    try:
        shaper = make_shaper(choice.kind, frequencies, ratios, choice.tolerance or _TOLERANCE)
    except InputError as error:
        raise InputError(f"{design.label}: {error}") from error
    return convolve(motion, shaper, jumps=design.reference.kind == "setpoint")


def _frequencies(
    choice: Shaper, design: Design, modes: Mapping[str, Callable[[], list[Mode]]]
) -> tuple[list[float], list[float]]:
    """Frequencies [rad/s] and damping ratios of the modes to cancel."""
    given = np.broadcast_to(choice.damping_ratio or (0.0,), len(choice.frequency)).tolist()
    found = list[Mode]()
    for entry, ratio in zip(choice.frequency, given, strict=True):
        named = choice.names_mode(entry)
        if named is None:
            found.append((float(entry), ratio))
            continue
        kind, number = named
        if number > len(known := modes[kind]()):
            where = "of its loop that ring" if kind == "loop" else "with the drives held"
            none = "there is no mode with the drives held"
            if kind == "loop":
                none = "its loop has no mode that rings, or is unstable"
            expected = f"one of the {len(known)} modes {where}" if known else f"a number, as {none}"
            raise refuse(design.label, "reference.shaper.frequency", expected=expected, got=entry)
        found.append(known[number - 1])
    return [w for w, _ in found], [ratio for _, ratio in found]


def held_modes(linear: LinearPlant, drives: Sequence[int]) -> list[Mode]:
    """Frequencies [rad/s], ascending, and damping ratios of what vibrates with the drives held.

    These are the rows of q without a torque: bending, and links behind springs. Where the joint
    loop is stiff, or its model cancels the reaction of the links, as decoupling does, they are the
    poles that ring in the closed loop.
    """
    f = passive_rows(len(linear.M), drives)
    M, D, K = (A[np.ix_(f, f)] for A in (linear.M, linear.D, linear.K))
    below = -np.linalg.solve(M, np.hstack([K, D])) if f else np.zeros((0, 0))
    return _ringing(np.vstack([np.eye(len(f), 2 * len(f), len(f)), below]))


def loop_modes(linear: LinearPlant, slopes: Slopes) -> list[Mode]:
    """Frequencies [rad/s], ascending, and damping ratios of the ringing modes of a loop.

    `slopes` are those of its law by [q; v] and its integrals: `Controller.law_jacobian`. A
    prefilter, as a shaper is, has to cancel poles of the loop, not of the arm.
    """
    by_x, by_z, z_by_x, z_by_z = slopes
    A, B = linear.A_state, linear.B_state
    return _ringing(np.block([[A + B @ by_x, B @ by_z], [z_by_x, z_by_z]]))


def _ringing(A: Array) -> list[Mode]:
    """Frequencies and damping ratios of the stable modes of x' = A x with less than half of it."""
    poles = [pole for pole in np.linalg.eigvals(A).astype(complex) if pole.imag > 0]
    modes = sorted((float(abs(pole)), float(-pole.real / abs(pole))) for pole in poles)
    return [(w, max(ratio, 0.0)) for w, ratio in modes if -_ROUND_OFF < ratio < _RINGS]


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
