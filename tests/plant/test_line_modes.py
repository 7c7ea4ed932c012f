"""Modes of a line at any free length, against the matrices of the line at that length."""

import numpy as np
import pytest

from flexctl.beam.matrices import assemble_matrices
from flexctl.model.lookup import load_model
from flexctl.model.record import BasisChoice
from flexctl.model.settings import apply_settings
from flexctl.plant.assembly import assemble_bodies

BASES = {
    "modes": BasisChoice(kind="modes", order=2),
    "elements": BasisChoice(kind="elements", order=3),
    "exact": BasisChoice(kind="modes", order=2, sliding="exact"),
}
LINES = [
    ("theodore-ghosal-rrp", 1, "y"),
    ("theodore-ghosal-rrp", 2, "x"),
    ("tapered-link", 0, "y"),
    ("theodore-ghosal-rrp", 1, "twist"),
]
TWIST = "link2.torsion={ GJ = 876.3, polar_inertia = 9.12e-5 }"


@pytest.mark.slow_but(
    "0.3-theodore-ghosal-rrp-1-twist-elements",
    "1.0-theodore-ghosal-rrp-1-y-elements",
    "1.0-theodore-ghosal-rrp-1-twist-elements",
)
@pytest.mark.parametrize("basis", BASES)
@pytest.mark.parametrize(("model", "link", "direction"), LINES)
@pytest.mark.parametrize("share", [0.3, 1.0])
def test_modes_diagonalise_mass_and_stiffness_at_every_length(basis, model, link, direction, share):
    arm = apply_settings(load_model(model), [TWIST] if direction == "twist" else [])
    body = assemble_bodies(arm, BASES[basis])[link]
    length = body.link.length * (share if body.sliding else 1)
    line = assemble_matrices(body.beam(length), direction, body.shapes_at(direction, length))
    Phi, w = body.modes(direction, length), line.frequencies()

    np.testing.assert_allclose(Phi.T @ line.mass @ Phi, np.eye(len(w)), atol=1e-9)
    np.testing.assert_allclose(
        Phi.T @ line.stiffness @ Phi / np.outer(w, w), np.eye(len(w)), atol=1e-9
    )
