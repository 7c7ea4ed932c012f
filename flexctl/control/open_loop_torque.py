"""Open loop: the torques of the reference, without feedback."""

from __future__ import annotations

from flexctl.control.laws import LawParts, law_signals
from flexctl.control.reference import ReferenceMotion
from flexctl.model import Design
from flexctl.plant import Plant


def torque_law(plant: Plant, _design: Design, _reference: ReferenceMotion) -> LawParts:
    """Build the law tau = tau_d, the third signal of a reference of torques or commands.

    Source: [SM02], figures 4 to 6.
    """
    signals = law_signals(plant, integral=False)
    return LawParts(
        law=signals.law(signals.a_d),
        n_state=0,
        assumptions=("open loop: the torques are given, and nothing is measured",),
    )
