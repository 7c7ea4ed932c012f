"""Model-based decoupling of the joints, with an optional LQR second loop."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import casadi as ca
import numpy as np

from flexctl.checks import Array
from flexctl.control.laws import LawParts, Recipe, Signals, in_commands, joint_gains
from flexctl.control.lqr import GivenFeedback, StateFeedback
from flexctl.control.reference import ReferenceMotion
from flexctl.control.scheduled_loop import (
    design_schedule,
    schedule_numbers,
    scheduled_signals,
)
from flexctl.control.second_loop import (
    decoupled_model,
    feedback_sentences,
    make_second_loop,
    passive_rows,
    second_feedback,
    with_integrals,
)
from flexctl.errors import DesignError
from flexctl.model import Design, SecondLoop
from flexctl.plant import LinearPlant, Plant, linearise

_KNOWN = "the controller knows mass, gravity, stiffness and damping of its design plant"
_ROTORS = (
    "with flexible joints it decouples the rotors, on which the torques act: the links follow "
    "through the springs, to which the joint loop adds no damping"
)


def decoupling_law(plant: Plant, design: Design, reference: ReferenceMotion) -> LawParts:
    """Torques that turn the driven coordinates into double integrators (partial linearisation).

    tau = (M_rr - M_rf M_ff^-1 M_fr) u + n_r - M_rf M_ff^-1 n_f,  n = h + c + k + D v, u = a_r - Gv
    e' - Gp e - Gi int(e) in the gross motion, so that e'' + Gv e' + Gp e = 0 about the desired
    motion of the driven coordinates, `Signals.driven`, with acceleration a_r; after it u = -G [e;
    q_f - q_f0; e'; q_f'] if there is a second loop. n holds the 1/2 q_f'(dK/dl)q_f of a sliding
    link and the plant's own damping. Source: [TG95], (31)-(37).

    The torques act on r: on rigid joints and on the rotors of flexible ones. The link angle of a
    flexible joint belongs to f, with the elastic coordinates: a torque has no direct effect on its
    acceleration. Rotors then follow their reference exactly, q_d + c_r/k under gravity, and links
    follow through the springs, until the second loop damps the vibration.

    Raises
    ------
    DesignError
        When the joint gains, or a second loop that is designed, give no stable loop on the design
        plant.
    InputError
        When the given gain of a second loop does not fit the design plant.
    """
    numbers = joint_gains(design.joint_gains, plant.m)
    Gi = numbers.get("Gi")
    feedback, second = None, design.second_loop
    if not (second and second.schedule):  # which acts in place of Gp and Gv
        require_stable_joints(numbers["Gp"], numbers["Gv"], Gi)
    if second:
        linear = linearise(plant.nominal, plant.straight(reference.final))
        feedback = make_second_loop(linear, plant.drives, second, design.label)
        if Gi is not None and isinstance(feedback, StateFeedback):
            _require_stable_integral(linear, plant.drives, feedback, Gi)
        if second.schedule:
            return _scheduled(plant, second, reference, numbers.get("Gi"))
        numbers |= {"G": feedback.gain, "q0": linear.q0}

    def write(plant: Plant, signals: Signals) -> ca.Function:
        x = signals.numbers
        u = signals.driven[2] - x["Gv"] * signals.error_rate - x["Gp"] * signals.error
        integral, summed = x["Gi"] * signals.z if "Gi" in x else 0, signals.error
        if "G" in x:
            u = (1 - signals.s) * u + signals.s * second_feedback(signals)
            summed = (1 - signals.s) * summed + signals.s * _driven_sag(signals)
        return signals.law(decoupling_torque(plant, signals, u - integral), summed)

    return LawParts(
        law=Recipe(write=write, numbers=numbers, integral=Gi is not None),
        n_state=plant.m if Gi is not None else 0,
        feedback=feedback,
        assumptions=tuple(_assumptions(plant, feedback)),
    )


def _scheduled(
    plant: Plant, second: SecondLoop, reference: ReferenceMotion, Gi: Array | None
) -> LawParts:
    """Build the law of a second loop that acts all along the path: u = a_r - G(p) x - Gi int e."""
    feedback = design_schedule(plant.nominal, reference, second, torques=False, Gi=Gi)
    numbers = schedule_numbers(plant.nominal, reference, feedback)
    numbers |= {} if Gi is None else {"Gi": Gi}

    def write(plant: Plant, signals: Signals) -> ca.Function:
        own = scheduled_signals(plant, signals)
        u = own.acceleration + own.feedback
        if "Gi" in signals.numbers:
            u -= signals.numbers["Gi"] * signals.z
        return signals.law(decoupling_torque(plant, signals, u), own.error)

    return LawParts(
        law=Recipe(write=write, numbers=numbers, integral=Gi is not None),
        n_state=0 if Gi is None else plant.m,
        feedback=feedback,
        assumptions=tuple(_assumptions(plant, feedback)),
    )


def _assumptions(plant: Plant, feedback: StateFeedback | GivenFeedback | None) -> Iterator[str]:
    yield _KNOWN
    if plant.rotors:
        yield _ROTORS
    yield from feedback_sentences(feedback)


def decoupling_torque(plant: Plant, signals: Signals, u: ca.SX) -> ca.SX:
    """Commands (m, 1) that give the driven coordinates the accelerations u (m, 1) [rad/s^2, m/s^2].

    The rest then accelerates by M_ff a_f = -(M_fr u + n_f), and the torque is the driven rows of
    the inverse dynamics: the same as with the Schur complement, without forming an inverse. These
    include the back-EMF of motors, whose commands follow from them.
    """
    e, r, f = plant.equations, list(plant.drives), list(passive_rows(plant.n, plant.drives))
    unforced = ca.substitute(e.inverse, e.a, ca.SX.zeros(plant.n))
    M, force = ca.substitute([e.M, unforced], [e.q, e.v], [signals.q, signals.v])
    if not f:
        return in_commands(plant, M @ u + force)
    D, LT, order = ca.ldl(M[f, f])
    a_f = -ca.ldl_solve(M[f, r] @ u + force[f], D, LT, order)
    return in_commands(plant, M[r, r] @ u + M[r, f] @ a_f + force[r])


def _driven_sag(signals: Signals) -> ca.SX:
    """Error (m, 1) of the driven coordinates from the equilibrium of the second loop.

    An integral of `Signals.error` would pull rotors to q_d + c_r/k, which neglects the load of the
    links' sag on the springs and conflicts with the second loop, which includes it.
    """
    return (signals.q - signals.numbers["q0"])[list(signals.drives)]


def require_stable_joints(Gp: Array, Gv: Array, Gi: Array | None) -> None:
    """Hurwitz: e'' + Gv e' + Gp e + Gi int(e) = 0 is stable if Gp Gv > Gi."""
    if Gi is None or np.all(Gp * Gv > Gi):
        return
    j = int(np.argmax(Gi / (Gp * Gv)))
    raise DesignError(
        f"gains.Gi: expected less than Gp Gv = {Gp[j] * Gv[j]:g} for joint{j + 1}, got {Gi[j]:g}"
    )


def _require_stable_integral(
    linear: LinearPlant, drives: Sequence[int], feedback: StateFeedback, Gi: Array
) -> None:
    """Check that the second loop, designed without the integral, keeps its decay with it."""
    A, B = with_integrals(*decoupled_model(linear, drives))
    poles = np.linalg.eigvals(A - B @ np.hstack([feedback.gain, np.diag(Gi)]))
    worst = poles[poles.real.argmax()]
    if worst.real >= 0:
        raise DesignError(
            f"gains.Gi: the integral makes the second loop unstable (pole at {worst:.4g} rad/s); "
            "lower Gi"
        )
    if worst.real > -feedback.decay:
        raise DesignError(
            f"gains.Gi: with the integral the second loop has a pole at {worst:.4g} rad/s, which "
            f"decays slower than second_loop.decay of {feedback.decay:g} 1/s; take larger weights "
            "of the joints beside it, or no integral"
        )
