"""What a loop is made of in words: arms, designs, plants, controllers, linear models, runs."""

from __future__ import annotations

import numpy as np

from flexctl.control import Controller
from flexctl.loop import ClosedLoop, LinearLoop, damping_ratios, judge_poles, spectral_abscissa
from flexctl.model import Arm, BasisChoice, Design
from flexctl.plant import LinearPlant, Plant
from flexctl.simulation import Trajectory
from flexctl.view.words.numbers import (
    at_most,
    basis_words,
    figure,
    length,
    limit_name,
    listed,
    percent,
)

_FEW = 4  # names that are listed


def per_link(basis: BasisChoice) -> str:
    """Write a discretisation in words: ``4 elements per link and plane``."""
    return f"{basis_words(basis.described())} per link and plane"


def arm_words(arm: Arm) -> str:
    """Say which links and joints an arm has, and what it carries."""
    links = []
    for link in arm.links:
        bends = "flexible" if link.flexible else "rigid"
        spring = "flexible " if link.flexible_joint else ""
        driven = "" if link.command == "torque" else f", motor with {link.command} command"
        links.append(f"{link.name} ({bends}, {spring}{link.joint} joint{driven})")
    weight = "with gravity" if any(arm.gravity) else "without gravity"
    return f"{arm.name}: {listed(links)}; payload {arm.payload.mass:g} kg, {weight}."


def design_words(design: Design) -> str:
    """Say which method a design has, for which arm, and which motion it follows."""
    how = _timing(design.loop.sample_time or None, design.loop.delay)
    shaper = design.reference.shaper
    kind = design.reference.kind + (f", shaped by {shaper.kind}" if shaper else "")
    return (
        f"{design.name}: method {design.method} for {design.model}, designed on "
        f"{per_link(design.basis)}; {how}. Its reference is of kind {kind}."
    )


def plant_words(plant: Plant) -> str:
    """Say how many coordinates a plant has, and how it is evaluated."""
    count = len(plant.parameters)
    names = listed(plant.parameters) if count <= _FEW else f"{count} numbers of the arm"
    free = f" (free: {names})" if count else ""
    return (
        f"Equations of motion of {plant.arm.name} on {per_link(plant.basis)}: "
        f"{_count(plant.n, 'coordinate')}, {_count(plant.m, 'actuator')}. "
        f"Engine {plant.engine}, {plant.backend}{free}."
    )


def controller_words(controller: Controller) -> str:
    """Say what a controller measures, how it is timed, and on what it rests."""
    states = f"{controller.n_state} {'state' if controller.n_state == 1 else 'states'}"
    design, plant = controller.design, controller.plant
    timing = _timing(controller.sample_time, controller.delay)
    reads = f" It reads the {listed(controller.fitted.names)}." if controller.fitted else ""
    return (
        f"{design.name}: method {design.method} for {plant.arm.name}, designed on "
        f"{per_link(plant.basis)}. Its law has {states} and is {timing}; a run lasts "
        f"{controller.duration:g} s.{reads}"
    )


def loop_words(loop: ClosedLoop) -> str:
    """Say which controller acts on which truth plant."""
    truth = loop.truth
    return (
        f"{controller_words(loop.controller)} It acts on {truth.arm.name} with "
        f"{per_link(truth.basis)} ({truth.n} coordinates)."
    )


def _count(number: int, thing: str) -> str:
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def linear_plant_words(plant: LinearPlant) -> str:
    """Say at which frequencies a linear plant vibrates, or that it falls."""
    squares = plant.modes()[0]
    size = f"Linear plant with {len(plant.states)} states"
    if squares[0] < 0:
        return f"{size}: with its joints free it falls, at {figure(np.sqrt(-squares[0]))} 1/s."
    rigid, w = np.count_nonzero(squares == 0), np.sqrt(squares[squares > 0])
    motions = _count(int(rigid), "rigid-body motion")
    if not len(w):
        return f"{size}: {motions}."
    first, last = figure(w[0], 4), figure(w[-1], 4)
    return f"{size}: {motions}, first natural frequency {first} rad/s, highest {last} rad/s."


def linear_loop_words(loop: LinearLoop) -> str:
    """Say whether a linear loop is stable, what decays last and what is damped least."""
    poles, stable = loop.poles, judge_poles(loop.poles)
    rate = spectral_abscissa(poles)
    if stable is False:
        verdict = f"unstable: a disturbance grows at {figure(rate)} 1/s"
    elif stable is True:
        verdict = f"stable: the slowest eigenvalue decays at {figure(-rate)} 1/s"
    else:
        verdict = "marginally stable: a disturbance does not decay"
    timing = _timing(loop.sample_time, loop.delay)
    zeta = damping_ratios(poles)
    least = int(zeta.argmin())
    damped = (
        f"smallest damping ratio {percent(zeta[least])} at {figure(abs(poles[least]), 4)} rad/s"
    )
    return f"The linear loop, {timing}, is {verdict}; {damped}."


def run_words(run: Trajectory) -> str:
    """Say how long a run is, its tip errors, time at torque limits, and how exact it is."""
    sentences = [f"The run lasts {run.t[-1]:.4g} s."]
    if run.tracks:
        sentences.append(
            f"The tip error is {at_most(length(run.tip_error.max()))} at the {len(run.t)} times "
            f"kept, at the end {length(run.tip_error[-1])}."
        )
    spent = [
        f"{joint} {seconds:.3g} s"
        for joint, seconds in zip(run.joints, run.saturated, strict=True)
        if seconds > 0
    ]
    kinds = dict.fromkeys(map(limit_name, run.command_units))
    what = next(iter(kinds)) if len(kinds) == 1 else "actuator limit"
    sentences += [f"Time at {what}s: {listed(spent)}."] if spent else []
    sentences.append(
        f"Integrated by {run.integrator} in {run.steps} steps; the energy account is off by "
        f"{run.energy.imbalance:.1g} of the largest energy transferred."
    )
    return " ".join(sentences)


def _timing(sample_time: float | None, delay: float) -> str:
    """Say when a law acts: ``sampled every 0.001 s``, or ``continuous``."""
    late = f" with a delay of {delay:g} s" if delay else ""
    return f"sampled every {sample_time:g} s{late}" if sample_time else "continuous"
