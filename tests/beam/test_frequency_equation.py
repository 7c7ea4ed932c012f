"""The frequency equation and its derivative, against the printed one in fifty digits."""

import mpmath
import numpy as np
import pytest

from flexctl.beam.frequency_equation import equation_terms
from flexctl.beam.line import TipLoad
from flexctl.beam.load_path import LoadPath
from tests.beam import sliding_witness

LOAD = TipLoad(mass=0.8, inertia=0.3, offset=-0.4)


@pytest.mark.parametrize("beta", [0.9, 1.7, 4.6, 11.0, 25.0])
@pytest.mark.parametrize("derivative", [0, 1])
def test_the_equation_and_its_derivative_are_those_of_the_printed_one(beta, derivative):
    with mpmath.workdps(50):
        at = (mpmath.mpf(beta), LOAD.mass, LOAD.inertia, LOAD.offset)
        exact = mpmath.diff(sliding_witness.equation, at, (derivative, 0, 0, 0)) / mpmath.cosh(beta)
    found = equation_terms(np.array([[beta]]), LoadPath.through(LOAD).parts)[derivative][0, 0]
    # round-off of the largest term, of order beta^4
    assert found == pytest.approx(float(exact), rel=1e-12, abs=1e-14 * beta**4)
