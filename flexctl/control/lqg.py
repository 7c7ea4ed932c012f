"""Linear-quadratic control of the whole arm about its reference, LQG with a Kalman filter."""

from __future__ import annotations

from collections.abc import Iterator

from flexctl.body import present
from flexctl.control.laws import LawParts
from flexctl.control.lqr import GivenFeedback, StateFeedback
from flexctl.control.reference import ReferenceMotion
from flexctl.control.scheduled_loop import design_schedule, state_feedback_law
from flexctl.control.second_loop import feedback_sentences, make_second_loop
from flexctl.model import Design, SecondLoop, refuse
from flexctl.plant import Plant, linearise

_KNOWN = (
    "the controller knows mass, gravity, stiffness and damping of its design plant; it decouples "
    "nothing: feedforward of the rigid arm along the reference, and feedback of the whole state"
)
_ONE_GAIN = "its gain is that of the final pose all along the motion (second_loop.schedule: 0)"


def lqg_law(plant: Plant, design: Design, reference: ReferenceMotion) -> LawParts:
    """Make the law tau = tau_r(q_d, v_d, a_d) + holding - G [e; q_f - q_fs; e'; q_f'].

    tau_r is the inverse dynamics of the rigid arm along the reference; e is the error of what the
    torques act on, and q_f - q_fs that of the other coordinates from the deflection that gravity
    and the slow motion cause, see `scheduled_signals`. G minimises the integral of the second
    loop's weights and of effort |tau|^2 on the plant linearised at the final pose, or at `schedule`
    poses along the path: with the Kalman filter of `loop.measures`, LQG. With a weight of the
    integrals of e these are states of the optimal regulator, and of the law: G [..; int e].
    Source: [AndersonMoore90].

    Raises
    ------
    InputError
        When a given gain does not fit the design plant, or under gravity the reference is no
        straight line in joint space, along which the sag is known.
    DesignError
        As `design_second_loop` and `design_schedule`.
    """
    second = design.second_loop
    assert second is not None
    _require_known_sag(plant, design)
    feedback = _design_feedback(plant.nominal, design.label, second, reference)
    return state_feedback_law(plant, reference, feedback, _assumptions(second, feedback))


def _design_feedback(
    plant: Plant, label: str, second: SecondLoop, reference: ReferenceMotion
) -> StateFeedback | GivenFeedback:
    """Return the feedback at the final pose, or scheduled along the path."""
    if second.schedule:
        return design_schedule(plant, reference, second, torques=True)
    linear = linearise(plant, plant.straight(reference.final))
    return make_second_loop(linear, plant.drives, second, label, torques=True, integrals=True)


def _require_known_sag(plant: Plant, design: Design) -> None:
    """Refuse a curved reference under gravity: the sag is known along a straight path only."""
    if present(*plant.equations.arm.gravity) and not design.reference.on_one_line:
        expected = "a straight line in joint space, as there is gravity and method is lqg"
        raise refuse(design.label, "reference", expected=expected, got=design.reference.kind)


def _assumptions(second: SecondLoop, feedback: StateFeedback | GivenFeedback) -> Iterator[str]:
    yield _KNOWN
    if not second.schedule:
        yield _ONE_GAIN
    yield from feedback_sentences(feedback)
