"""Composite control: computed torque for the slow motion, feedback for the fast vibrations."""

from __future__ import annotations

from collections.abc import Iterator

import casadi as ca

from flexctl.control.fast_loop import FastFeedback, make_fast_loop
from flexctl.control.laws import (
    LawParts,
    Recipe,
    Signals,
    constant,
    in_commands,
    joint_gains,
    rigid_forces,
)
from flexctl.control.path_schedule import path_numbers, path_parameter, table_value
from flexctl.control.quasi_steady import (
    compliance,
    constant_stiffness,
    quasi_steady_deflection,
)
from flexctl.control.reference import ReferenceMotion
from flexctl.control.scheduled_loop import design_schedule, state_feedback_law
from flexctl.control.second_loop import feedback_sentences, make_second_loop, second_feedback
from flexctl.control.singular_perturbation import separate_time_scales, slow_fast_map
from flexctl.model import Design, SecondLoop, SlowAngle
from flexctl.plant import Plant, linearise


def composite_law(plant: Plant, design: Design, reference: ReferenceMotion) -> LawParts:
    """Build the law tau = tau_s + tau_f of two time scales.

    Slow part, computed torque of the rigid arm, Coriolis and gravity terms included:

        tau_s = S' f(S y, S y', S u),  u = a_d - Gv e' - Gp e,

    y being the link angles or the coordinates on which the torques act. Fast part, about the
    quasi-steady deflection of the slow motion, both at the measured slow state:

        tau_f = -Kp (z - z_qs) - Kv z',  z_qs = K_z^-1 (B_z tau_s - T_z' f(S y, S y', S u)).

    With motors tau_s is converted into commands, and Kp, Kv and G make commands. After the motion,
    if there is a second loop, state feedback about the equilibrium takes over:

        tau = tau_0 - G [e; q_f; e'; q_f'].

    Source: [SM02], (68)-(70), with f1 in (69) and z_qs in (70). Raises as `make_fast_loop` and
    `make_second_loop`, and InputError when the arm is rigid.
    """
    separate_time_scales(plant.nominal, reference.final, design.slow_angle)  # refuses a rigid arm
    loop, angle, feedback = design.fast_loop, design.slow_angle, None
    if design.second_loop and design.follows_path:
        return _scheduled(plant, design.second_loop, reference)
    numbers = joint_gains(design.joint_gains, plant.m)
    numbers.pop("Gi", None)
    fast = make_fast_loop(plant.nominal, design, loop, reference) if loop else None
    quasi_steady = bool(loop and loop.quasi_steady)
    if fast:
        numbers |= {f"gains{k}": gains for k, gains in enumerate(fast.gains)}
        if len(fast.gains) > 1:
            numbers |= path_numbers(reference)
        if quasi_steady and constant_stiffness(plant):
            numbers["compliance"] = compliance(plant, reference, angle)
    if design.second_loop:
        linear = linearise(plant.nominal, plant.straight(reference.final))
        second = design.second_loop
        feedback = make_second_loop(linear, plant.drives, second, design.label, torques=True)
        numbers |= {"G": feedback.gain, "q0": linear.q0, "tau0": linear.tau0}

    def write(plant: Plant, signals: Signals) -> ca.Function:
        y, rate, u = _slow_motion(plant, signals, angle)
        forces = rigid_forces(plant, y, rate, u)
        T = constant(slow_fast_map(plant, angle))
        slow = T[:, : plant.m].T @ forces
        tau = in_commands(plant, slow)
        if fast:
            load = T[:, plant.m :].T @ (constant(plant.selection) @ slow - forces)
            z_qs = quasi_steady_deflection(plant, signals, T, y, load) if quasi_steady else 0
            G = signals.numbers["gains0"]
            if len(fast.gains) > 1:
                p = path_parameter(signals.q_d, signals.numbers)
                G = table_value("gains", signals.numbers, p)
            W = constant(fast.scales.W)
            tau -= G @ ca.vertcat(W @ signals.q - z_qs, W @ signals.v)
        if "G" in signals.numbers:
            own = signals.numbers["tau0"] + second_feedback(signals)
            tau = (1 - signals.s) * tau + signals.s * own
        return signals.law(tau)

    structure = (angle, quasi_steady, fast is not None)
    return LawParts(
        law=Recipe(write=write, numbers=numbers, structure=structure),
        n_state=0,
        feedback=feedback,
        fast=fast,
        assumptions=(*_assumptions(plant, design, fast), *feedback_sentences(feedback)),
    )


def _scheduled(plant: Plant, second: SecondLoop, reference: ReferenceMotion) -> LawParts:
    """Build the law of a second loop that acts all along the path."""
    feedback = design_schedule(plant.nominal, reference, second, torques=True)
    return state_feedback_law(plant, reference, feedback, (_KNOWN, *feedback_sentences(feedback)))


def _slow_motion(plant: Plant, signals: Signals, angle: SlowAngle) -> tuple[ca.SX, ca.SX, ca.SX]:
    """Measured slow coordinates y, y' and u = a_d - Gv e' - Gp e, their demand of y''; (m, 1)."""
    Gp, Gv = signals.numbers["Gp"], signals.numbers["Gv"]
    if angle == "link":
        rows, (y_d, rate_d, a_d) = list(range(plant.m)), (signals.q_d, signals.v_d, signals.a_d)
    else:
        rows, (y_d, rate_d, a_d) = list(signals.drives), signals.driven
    y, rate = signals.q[rows], signals.v[rows]
    return y, rate, a_d - Gv * (rate - rate_d) - Gp * (y - y_d)


_KNOWN = "the controller knows mass, gravity and stiffness of its design plant"
_ANGLES: dict[SlowAngle, str] = {
    "link": "the slow law measures the link angles, which are not collocated with the torques",
    "rotor": "the slow law measures the rotor angles, collocated with the torques; links follow",
}


def _assumptions(plant: Plant, design: Design, fast: FastFeedback | None) -> Iterator[str]:
    yield _KNOWN
    yield _ANGLES[design.slow_angle] if plant.rotors else "the slow law measures the joints"
    loop = design.fast_loop
    if loop is None or fast is None:
        yield "slow control alone: no feedback damps the vibrations"
        return
    if not loop.quasi_steady:
        yield "the fast loop also opposes the deflection that the slow motion causes"
    if loop.schedule:
        yield (
            f"fast gains are interpolated between {loop.schedule} poses along the path, within "
            f"{fast.interpolation_error:.1e} of the designed ones"
        )
    worst = fast.poles[fast.poles.real.argmax()]
    if worst.real >= 0:
        yield f"the fast subsystem is not stable under these gains (pole at {worst:.4g} rad/s)"
