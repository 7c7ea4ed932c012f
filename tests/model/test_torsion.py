"""The torsion of a link: read from a file, refused, written again, set from the command line."""

import pytest

from flexctl.errors import InputError
from flexctl.model.arm import Arm
from flexctl.model.lookup import load_model
from flexctl.model.settings import apply_settings

MODEL = """
summary = "A link that twists"
source = "own"
gravity = [0.0, 0.0, 0.0]
[[link]]
joint = "revolute"
length = 0.8
mass_per_length = 0.3
EI = { z = 5.0 }
torsion = { GJ = { x = [0.0, 1.0], value = [8.0, 1.0], power = 3 }, polar_inertia = 2e-4 }
[[link]]
joint = "prismatic"
total_length = 1.0
mass_per_length = 0.3
EI = { x = 4.0 }
[[link]]
joint = "revolute"
dh = { d = 0.4 }
mass_per_length = 0.3
"""
TORSION = (
    "torsion = { GJ = { x = [0.0, 1.0], value = [8.0, 1.0], power = 3 }, polar_inertia = 2e-4 }"
)


@pytest.fixture
def load(tmp_path):
    """load(old, new): the arm of the file with a text replaced."""

    def arm(old="", new=""):
        assert old in MODEL
        path = tmp_path / "twisting.toml"
        path.write_text(MODEL.replace(old, new, 1) if old else MODEL)
        return load_model(path)

    return arm


def test_a_link_has_the_mean_of_its_rigidity(load):
    link = load().links[0]
    assert link.rigidities == pytest.approx({"z": 5.0, "twist": 15 / 4})
    assert link.profile("torsion.GJ").value == pytest.approx((32 / 15, 4 / 15))
    assert link.profile("torsion.polar_inertia").even


def test_a_table_is_what_the_file_says(load):
    arm = load()
    assert Arm.model_validate(arm.table() | {"name": arm.name, "path": arm.path}) == arm
    assert arm.table()["link"][0]["torsion"]["GJ"]["power"] == 3


def test_a_rigid_link_keeps_the_inertia_of_its_sections(load):
    link = load().rigid.links[0]
    assert (link.rigidities, link.torsion.GJ, link.torsion.polar_inertia) == ({}, None, 2e-4)


def test_a_link_without_EI_may_twist_alone(load):
    link = load("EI = { z = 5.0 }", "").links[0]
    assert link.flexible
    assert link.dh.a == link.length


@pytest.mark.parametrize("setting", ["link1.torsion.GJ=*0.5", "link1.torsion.GJ=-50%"])
def test_scaling_leaves_points_and_power(load, setting):
    arm = load()
    found = apply_settings(arm, [setting]).links[0]
    assert found.rigidities["twist"] == pytest.approx(arm.links[0].rigidities["twist"] / 2)
    one, other = (link.profile("torsion.GJ") for link in (found, arm.links[0]))
    assert (one.x, one.power) == (other.x, other.power)
    assert one.value == pytest.approx(other.value)


def test_an_arm_is_given_a_torsion_by_a_setting(load):
    arm = apply_settings(load(TORSION, ""), ["link1.torsion={GJ=3.0, polar_inertia=1e-4}"])
    assert arm.links[0].rigidities["twist"] == 3.0


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("GJ = {", "GI = {", r"torsion\.GI: expected a known key .*GJ"),
        (", polar_inertia = 2e-4", "", r"torsion\.polar_inertia: expected .*got nothing"),
        ("polar_inertia = 2e-4", "polar_inertia = 0", r"polar_inertia: expected .*got 0"),
        ("EI = { x = 4.0 }", "torsion = { GJ = 2.0, polar_inertia = 1e-4 }",
         r"link\[2\]\.torsion: expected no such key, as the link slides, got 2 entries"),
        ("dh = { d = 0.4 }", "dh = { d = 0.4 }\ntorsion = { polar_inertia = 1e-4 }",
         r"link\[3\]\.torsion: expected no such key, as the line lies along the joint's axis"),
        ("mass_per_length = 0.3\nEI = { z", "EI = { z", r"link\[1\]\.mass_per_length: expected"),
        ("EI = { z = 5.0 }", "EI = { twist = 5.0 }", r"EI\.twist: expected a direction of a"),
    ],
)  # fmt: skip
def test_a_torsion_that_does_not_fit_is_refused_in_one_line(load, old, new, message):
    with pytest.raises(InputError, match=message) as refused:
        load(old, new)
    assert "\n" not in str(refused.value)
