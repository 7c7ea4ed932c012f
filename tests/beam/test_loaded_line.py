"""Frequencies of a clamped line under a load at its tip, against the frequency equation."""

import numpy as np
import pytest

from flexctl.beam.assumed_modes import assumed_modes
from flexctl.beam.frequency_equation import clamped_mass_roots
from flexctl.beam.line import FREE_TIP, PLAIN, TipLoad
from flexctl.beam.loaded_line import exact_line, line_of_shapes

LOADS = {
    "free": FREE_TIP,
    "mass": TipLoad(mass=2.0),
    "body": TipLoad(mass=0.7, inertia=0.3, offset=0.2),
    "heavy": TipLoad(mass=500.0, inertia=40.0),
}


@pytest.mark.parametrize("load", LOADS)
@pytest.mark.parametrize("order", [1, 2, 5, 12])
def test_a_line_that_bends_freely_has_the_roots_of_the_frequency_equation(order, load):
    found = exact_line(order).frequencies(LOADS[load], order)

    np.testing.assert_allclose(found, clamped_mass_roots(order, LOADS[load]) ** 2, rtol=1e-10)


def test_modes_have_their_own_frequencies_and_those_of_another_load_are_too_high():
    modes, other = assumed_modes(3, LOADS["body"]), LOADS["mass"]
    line = line_of_shapes(modes, PLAIN)
    exact = clamped_mass_roots(3, other) ** 2

    np.testing.assert_allclose(line.frequencies(LOADS["body"], 3), modes.beta**2, rtol=1e-10)
    assert (line.frequencies(other, 3) > exact).all()
