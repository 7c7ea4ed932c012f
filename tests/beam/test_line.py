"""The records of a line and its tip load refuse what no line or body can be."""

import math

import pytest

from flexctl.beam.line import FREE_TIP, Beam, TipLoad
from flexctl.errors import InputError

GOOD = {"length": 0.5, "mass_per_length": 0.2, "EI": {"y": 1.0}}


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"length": 0.0}, "length"),
        ({"length": math.nan}, "length"),
        ({"mass_per_length": -0.2}, "mass_per_length"),
        ({"mass_per_length": math.inf}, "mass_per_length"),
        ({"EI": {"y": -1.0}}, "EI.y"),
        ({"EI": {"q": 1.0}}, "'q'"),
    ],
)
def test_beam_refuses_impossible_data(changed, message):
    with pytest.raises(InputError, match=message):
        Beam(**{**GOOD, **changed})


def test_rigid_direction_is_named():
    with pytest.raises(InputError, match=r"\['y'\].*'z'"):
        Beam(**GOOD).rigidity("z")


def test_beam_keeps_its_own_table_of_rigidities():
    table = {"y": 1.0}
    beam = Beam(length=0.5, mass_per_length=0.2, EI=table)
    table["y"] = 2.0
    assert beam.rigidity("y") == 1.0


@pytest.mark.parametrize(
    "load",
    [
        {"mass": -1.0},
        {"inertia": -1.0},
        {"mass": math.nan},
        {"mass": 1e13},
        {"offset": math.inf},
        {"offset": 0.1},
        {"mass": 1.0, "offset": 1e-9},
        {"mass": 1.0, "inertia": 0.04, "offset": 0.21},
        {"mass": 1.0, "inertia": 0.04, "offset": -0.21},
    ],
)
def test_tip_load_refuses_what_no_body_has(load):
    with pytest.raises(InputError, match="expected"):
        TipLoad(**load)


@pytest.mark.parametrize("arm", [0.1, -0.3, 0.7, 1 / 3])
def test_point_mass_beyond_the_tip_is_accepted_in_spite_of_round_off(arm):
    load = TipLoad(mass=1e4, inertia=1e4 * arm**2, offset=1e4 * arm)
    assert 0 <= load.determinant <= 1e-15 * load.mass * load.inertia


@pytest.mark.parametrize("offset", [3e-17, -3e-17])
def test_point_mass_at_the_tip_is_accepted_in_spite_of_round_off(offset):
    assert TipLoad(mass=0.5, inertia=0.0, offset=offset).determinant == 0.0


def test_default_load_is_a_free_tip():
    assert FREE_TIP == TipLoad() == TipLoad(mass=0.0, inertia=0.0, offset=0.0)
