"""Section 6 of [TG95]: which model to take for which arm."""

from __future__ import annotations

import numpy as np

from examples.papers.claim import Claim, judge
from examples.papers.theodore_ghosal.arm import arm, choice
from flexctl.model.lookup import load_model
from flexctl.plant.linearisation import linearise
from flexctl.plant.plant import assemble_plant

_FINE = 6  # elements per line against which both are held


def _error(model: str, kind: str, order: int) -> float:
    """Largest relative error of the two lowest frequencies, joints free."""
    found = []
    for basis in (choice(kind, order), choice("elements", _FINE)):
        own = assemble_plant(
            arm() if model == "rrp" else load_model(model), basis, interpreted=True
        )
        found.append(linearise(own).frequencies()[own.m : own.m + 2])
    return float(np.abs(found[0] / found[1] - 1).max())


def recommendation() -> Claim:
    """Compare modes and elements of as many coordinates, of a tapered link and of the RRP arm."""
    errors = {
        (model, kind): _error(model, kind, order)
        for model in ("tapered-link", "rrp")
        for kind, order in (("modes", 2), ("elements", 1))
    }
    tapered, multi = (
        [errors[model, kind] for kind in ("modes", "elements")] for model in ("tapered-link", "rrp")
    )
    return Claim(
        id="section 6, recommendation",
        paper="assumed modes for uniform links and single-link arms, finite elements for links of "
        "complex sections and for multilink arms",
        ours="two lowest frequencies, joints free, two coordinates per line: of a tapered link "
        f"modes err by {100 * tapered[0]:.2g} %, one element by {100 * tapered[1]:.2g} %; of the "
        f"RRP arm by {100 * multi[0]:.2g} % and {100 * multi[1]:.2g} %",
        verdict=judge(tapered[1] < tapered[0] and multi[1] < multi[0]),
        why="modes of any line are found once, before the motion, by Ritz's method on the line's "
        "own pieces: it need not be uniform",
        numbers={
            "tapered_modes": tapered[0],
            "tapered_element": tapered[1],
            "rrp_modes": multi[0],
            "rrp_element": multi[1],
        },
    )
