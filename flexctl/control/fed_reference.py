"""What a law is given of its reference: positions, with rates, or with accelerations too."""

from __future__ import annotations

from dataclasses import replace

import casadi as ca

from flexctl.control.laws import LawParts, Recipe, Signals, input_symbols, law_function, law_key
from flexctl.model import FeedForward
from flexctl.plant import Plant

_WORDS: dict[FeedForward, str] = {
    "position": "the law gets only positions of its reference: rates and accelerations are zero",
    "rate": "the law gets positions and rates of its reference: accelerations are zero",
}


def feed_reference(plant: Plant, parts: LawParts, feed_forward: FeedForward) -> LawParts:
    """Make the law that gets zeros for the derivatives of the reference that are not fed forward.

    The reference itself, and what a run is judged by, stay as they are.
    """
    if feed_forward == "acceleration":
        return parts
    own = parts.law

    def blind(law: ca.Function) -> ca.Function:
        inputs = input_symbols(law)
        known = list(inputs)
        for k in (4,) if feed_forward == "rate" else (3, 4):  # v_d, a_d
            known[k] = ca.SX.zeros(inputs[k].shape)
        return law_function(inputs, *law.call(known))

    def write(plant: Plant, signals: Signals) -> ca.Function:
        assert isinstance(own, Recipe)
        return blind(own.write(plant, signals))

    structure = (feed_forward, law_key(own, plant))
    law = replace(own, write=write, structure=structure) if isinstance(own, Recipe) else blind(own)
    return replace(parts, law=law, assumptions=(*parts.assumptions, _WORDS[feed_forward]))
