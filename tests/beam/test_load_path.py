"""Loads along a path of lengths: pure powers of the length, refusals."""

import numpy as np
import pytest

from flexctl.beam.line import TipLoad
from flexctl.beam.load_path import LoadPath, SlidingLine
from flexctl.errors import InputError

LINE = SlidingLine(mass_per_length=0.5, mass=2.0, inertia=0.3, first_moment=-0.4)


def test_loads_are_those_of_a_tip_load_at_every_length():
    path = LINE.loads([0.2, 1.7])
    for k, length in enumerate([0.2, 1.7]):
        tip = LINE.tip(length)
        np.testing.assert_allclose(path.value[k], [tip.mass, tip.inertia, tip.offset], rtol=1e-15)
        np.testing.assert_allclose(path.determinant[k], tip.determinant, rtol=1e-14)


def test_a_point_of_any_path_keeps_its_load():
    path = LoadPath.through(TipLoad(mass=2.0, inertia=0.3, offset=0.1))
    np.testing.assert_array_equal(path.value, [[2.0, 0.3, 0.1]])
    assert path.determinant == pytest.approx(0.59, rel=1e-15)


@pytest.mark.parametrize("lengths", [0.0, -1.0, [1.0, np.nan], [np.inf], [], [[1.0]]])
def test_impossible_lengths_are_refused(lengths):
    with pytest.raises(InputError, match="length: expected finite numbers above 0"):
        LINE.loads(lengths)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"mass_per_length": 0.0}, "mass_per_length: expected"),
        ({"mass": -1.0}, "tip mass: expected"),
        ({"mass": 1.0, "inertia": 1.0, "first_moment": 1.1}, "tip offset: expected"),
    ],
)
def test_impossible_bodies_are_refused(wrong, message):
    with pytest.raises(InputError, match=message):
        SlidingLine(**{"mass_per_length": 1.0, **wrong})


def test_a_length_that_makes_the_load_too_heavy_is_refused():
    with pytest.raises(InputError, match="tip inertia: expected"):
        LINE.loads([1e-5, 1.0])
