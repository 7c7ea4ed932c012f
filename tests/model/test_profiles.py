"""What varies along a link: read from a file, refused, written again, set from the command line."""

import numpy as np
import pytest

from flexctl.errors import InputError
from flexctl.model.arm import Arm
from flexctl.model.lookup import load_model
from flexctl.model.profile import Profile
from flexctl.model.record import RefusalError
from flexctl.model.settings import apply_settings

MODEL = """
summary = "A tapered link"
source = "own"
gravity = [0.0, 0.0, 0.0]
[[link]]
joint = "revolute"
length = 0.8
mass_per_length = { x = [0.0, 0.4, 0.4, 1.0], value = [0.5, 0.3, 0.2, 0.1] }
EI = { y = { x = [0.0, 1.0], value = [8.0, 1.0], power = 3 }, z = 5.0 }
masses = [{ x = 0.5, mass = 0.2, inertia = [0.0, 0.0, 1e-3] }]
rotary_inertia = { y = 1e-4 }
shear_stiffness = { y = 2000.0 }
[[link]]
joint = "prismatic"
total_length = 1.0
mass_per_length = 0.3
EI = { x = 4.0 }
"""


@pytest.fixture
def load(tmp_path):
    """load(old, new): the arm of the file with a text replaced."""

    def arm(old="", new=""):
        assert old in MODEL
        path = tmp_path / "tapered.toml"
        path.write_text(MODEL.replace(old, new, 1) if old else MODEL)
        return load_model(path)

    return arm


def test_numbers_are_the_means(load):
    link = load().links[0]
    # trapezia; (2 - x)^3 from 8 to 1 has the integral (16 - 1) / 4
    assert link.mass_per_length == pytest.approx(0.4 * 0.4 + 0.6 * 0.15, rel=1e-15)
    assert link.EI["y"] == pytest.approx(15 / 4, rel=1e-14)
    assert link.EI["z"] == 5.0
    assert link.line_mass == pytest.approx(0.8 * 0.25 + 0.2, rel=1e-14)


STEP = Profile(x=(0.0, 0.4, 0.4, 1.0), value=(0.5, 0.3, 0.2, 0.1))
TAPER = Profile(value=(8.0, 1.0), power=3)


@pytest.mark.parametrize(
    ("profile", "x", "expected"),
    [
        (STEP, [0.0, 0.1, 0.4, 0.7, 1.0], [0.5, 0.45, 0.2, 0.15, 0.1]),
        (TAPER, [0.0, 0.5, 1.0], [8.0, 1.5**3, 1.0]),
    ],
    ids=["step", "taper"],
)
def test_profiles_are_power_laws_between_their_points(profile, x, expected):
    assert profile.at(np.array(x)) == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize("power", [1, 2, 3, 4])
def test_the_mean_is_the_integral(power):
    profile = Profile(x=(0.0, 0.3, 0.3, 1.0), value=(3.0, 2.0, 1.5, 0.2), power=power)
    t, w = np.polynomial.legendre.leggauss(10)
    parts = [(0.0, 0.3), (0.3, 1.0)]
    integral = sum((b - a) / 2 * profile.at(a + (b - a) * (t + 1) / 2) @ w for a, b in parts)
    assert profile.mean == pytest.approx(integral, rel=1e-14)


def test_a_table_is_what_the_file_says(load):
    arm = load()
    first = arm.table()["link"][0]
    assert first["mass_per_length"]["x"] == [0.0, 0.4, 0.4, 1.0]
    assert first["mass_per_length"]["value"] == pytest.approx([0.5, 0.3, 0.2, 0.1], rel=1e-15)
    assert first["EI"]["y"] == {"x": [0.0, 1.0], "value": [8.0, 1.0], "power": 3}
    assert first["EI"]["z"] == 5.0
    assert Arm.model_validate({**arm.table(), "name": arm.name, "path": arm.path}) == arm


def test_arms_that_vary_otherwise_are_not_equal(load):
    other = load("value = [8.0, 1.0], power = 3", "value = [5.0, 2.5]")
    assert load().links[0].EI == other.links[0].EI
    assert load() != other


@pytest.mark.parametrize("setting", ["link1.EI=*2", "link1.EI.y=+100%", "link1.EI.y.value=*2"])
def test_scaling_leaves_points_and_power(load, setting):
    table = apply_settings(load(), [setting]).table()["link"][0]
    assert table["EI"]["y"] == {"x": [0.0, 1.0], "value": [16.0, 2.0], "power": 3}


def test_scaling_masses_leaves_them_where_they_are(load):
    mass = apply_settings(load(), ["link1.masses=*3"]).links[0].masses[0]
    assert (mass.x, mass.mass, mass.inertia) == (0.5, pytest.approx(0.6), (0, 0, 3e-3))


def test_a_profile_can_be_set_to_a_number(load):
    link = apply_settings(load(), ["link1.EI.y=3.0"]).links[0]
    assert link.EI["y"] == 3.0
    assert link.profile("EI.y") == Profile()


def test_a_longer_link_keeps_its_profile(load):
    link = apply_settings(load(), ["link1.length=1.6"]).links[0]
    assert link.line_mass == pytest.approx(1.6 * 0.25 + 0.2, rel=1e-14)


X = "link[1].mass_per_length.x: expected points x/l from 0 to 1 that do not fall, none more than"
CASES = [
    ("[0.0, 0.4, 0.4, 1.0]", "[0.0, 0.4, 0.4, 0.9]", X),
    ("[0.0, 0.4, 0.4, 1.0]", "[0.0, 0.4, 0.3, 1.0]", X),
    ("[0.0, 0.4, 0.4, 1.0]", "[0.0, 0.0, 0.4, 1.0]", X),
    ("x = [0.0, 0.4, 0.4, 1.0]", "x = [0, 0.4, 0.4, 0.4, 1]", X),
    (
        "[0.5, 0.3, 0.2, 0.1]",
        "[0.5, 0.3, 0.2]",
        "link[1].mass_per_length.value: expected as many numbers as x has points, 4, got [0.5",
    ),
    (
        "[0.5, 0.3, 0.2, 0.1]",
        "[0.5, 0.3, 0.2, 0.0]",
        "link[1].mass_per_length.value: expected numbers above 0, got [0.5",
    ),
    (
        "[0.5, 0.3, 0.2, 0.1]",
        '[0.5, 0.3, 0.2, "a"]',
        "link[1].mass_per_length.value: expected an array of numbers, got [0.5",
    ),
    (
        "[0.5, 0.3, 0.2, 0.1]",
        "0.5",
        "link[1].mass_per_length.value: expected an array of numbers, ",
    ),
    ("power = 3", "power = 5", "link[1].EI.y.power: expected 1, 2, 3 or 4, got 5"),
    ("power = 3", "powr = 3", "link[1].EI.y.powr: expected a known key (nearest: power), got powr"),
    (", value = [0.5, 0.3, 0.2, 0.1]", "", "link[1].mass_per_length.value: expected an array of"),
    ("x = 0.5,", "x = 1.5,", "link[1].masses[1].x: expected at most 1, got 1.5"),
    ("mass = 0.2", "mass = -0.2", "link[1].masses[1].mass: expected at least 0, got -0.2"),
    (
        "[0.0, 0.0, 1e-3]",
        "[1e-3, 1e-3, 1.0]",
        "link[1].masses[1].inertia: expected none larger than the other two together",
    ),
    ("= { y = 1e-4 }", "= { y = 0.0 }", "link[1].rotary_inertia.y: expected more than 0, got 0.0"),
    ("= { y = 1e-4 }", "= { x = 1.0 }", "link[1].rotary_inertia.x: expected a direction of a rev"),
    (
        "EI = { y = { x = [0.0, 1.0], value = [8.0, 1.0], power = 3 }, z = 5.0 }",
        "EI = { z = 5.0 }",
        "link[1].shear_stiffness.y: expected a direction that bends (z), got y",
    ),
    (
        "mass_per_length = 0.3",
        "mass_per_length = { x = [0, 1], value = [0.3, 0.2] }",
        "link[2].mass_per_length: expected a number, as the link slides, got a profile",
    ),
    (
        "EI = { x = 4.0 }",
        "EI = { x = { x = [0, 1], value = [4.0, 3.0] } }",
        "link[2].EI.x: expected a number, as the link slides, got a profile",
    ),
    (
        "mass_per_length = 0.3",
        "mass_per_length = 0.3\nmasses = [{ x = 0.5, mass = 1.0 }]",
        "link[2].masses: expected no such key, as the link slides, got 1 entry",
    ),
    (
        "mass_per_length = 0.3",
        "mass_per_length = 0.3\nrotary_inertia = { x = 1e-4 }",
        "link[2].rotary_inertia: expected no such key, as the link slides, got 1 entry",
    ),
    (
        "mass_per_length = 0.3",
        "mass_per_length = 0.3\nshear_stiffness = { x = 1e4 }",
        "link[2].shear_stiffness: expected no such key, as the link slides, got 1 entry",
    ),
    (
        'joint = "prismatic"\ntotal_length = 1.0\nmass_per_length = 0.3\nEI = { x = 4.0 }',
        'joint = "revolute"\nlength = 1.0\ndh = { a = 1.0 }\nmasses = [{ x = 0.5, mass = 1.0 }]',
        "link[2].mass_per_length: expected more than 0, as the line carries masses, got 0",
    ),
    (
        'joint = "prismatic"\ntotal_length = 1.0\nmass_per_length = 0.3\nEI = { x = 4.0 }',
        'joint = "revolute"\ndh = { d = 1.0 }\nmass_per_length = 1.0\n'
        "masses = [{ x = 1, mass = 1 }]",
        "link[2].masses: expected no such key, as the line lies along the joint's axis (hub has",
    ),
]


@pytest.mark.parametrize(("old", "new", "message"), CASES)
def test_a_line_that_does_not_fit_is_refused_in_one_line(load, old, new, message):
    with pytest.raises(InputError) as refusal:
        load(old, new)
    said = str(refusal.value)
    assert said.split(": ", 1)[1].startswith(message)
    assert "\n" not in said


def test_a_profile_bends_and_steps_at_its_inner_points():
    value = (1.0,) * 4 + (2.0,)
    assert Profile(x=(0.0, 0.25, 0.7, 0.7, 1.0), value=value).breaks == (0.25, 0.7)
    assert Profile().breaks == ()


def test_a_profile_is_linear_unless_it_says_otherwise(load):
    profile = load().links[0].profile("mass_per_length")
    assert profile.power == 1
    assert profile.at(np.array([0.2]))[0] == pytest.approx(
        (profile.value[0] + profile.value[1]) / 2
    )


@pytest.mark.parametrize("last", [-1e-300, -1.0, np.inf])
def test_the_last_value_is_no_less_than_zero_either(last):
    Profile(x=(0.0, 0.5, 1.0), value=(1.0, 1.0, 0.0))
    Profile(x=(0.0, 0.5, 1.0), value=(0.0, 1.0, 1.0))
    with pytest.raises(RefusalError, match="value: expected numbers above 0"):
        Profile(x=(0.0, 0.5, 1.0), value=(1.0, 1.0, last))
    with pytest.raises(RefusalError, match="value: expected numbers above 0"):
        Profile(x=(0.0, 0.5, 1.0), value=(1.0, 0.0, 1.0))


@pytest.mark.parametrize("value", [(1.0, -1.0), (0.0, 0.0), (np.nan, 1.0)], ids=str)
def test_values_are_above_zero(value):
    with pytest.raises(RefusalError, match="value: expected numbers above 0"):
        Profile(value=value)
