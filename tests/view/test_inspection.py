"""`flexctl inspect`: its contract, and that its numbers are those of beam theory."""

import json
from pathlib import Path

import numpy as np
import pytest

from flexctl.control import design_controller
from flexctl.model.lookup import load_design, load_model

KEYS = {
    "provenance",
    "warnings",
    "model",
    "basis",
    "coordinates",
    "actuators",
    "pose",
    "link_frequencies",
    "tip_load",
    "tip_load_pose",
    "tip_load_here",
    "link_frequencies_unloaded",
    "frequencies_locked",
    "frequencies_free",
    "filter_frequencies",
    "at_rest",
    "rigid_inertia",
    "tip",
    "mass",
    "backend",
    "assumptions",
}


@pytest.fixture
def inspect(flexctl):
    def call(model, *words):
        said = flexctl("inspect", model, "--json", *words)
        assert (said.status, said.err) == (0, "")
        return json.loads(said.out)

    return call


@pytest.mark.parametrize("model", ["single-link-hub", "planar-two-link", "theodore-ghosal-rrp"])
def test_the_answer_has_the_keys_of_the_contract(inspect, model):
    found = inspect(model)
    n, m = len(found["coordinates"]), len(found["actuators"])

    assert set(found) == KEYS
    assert len(found["frequencies_locked"]) == n - m
    assert len(found["frequencies_free"]) == n - m
    assert np.shape(found["rigid_inertia"]) == (m, m)
    assert set(found["pose"]) == set(found["actuators"])


def test_the_clamped_link_has_the_frequency_of_a_cantilever(inspect):
    w = inspect("single-link-hub", "-e", "8")["link_frequencies"]["link1"]["y"]

    # cubic elements are off by (1.875 / 8)^4 / 1440 = 2e-6
    assert w[0] == pytest.approx(1.8751040687**2 * np.sqrt(18.4 / 0.54), rel=1e-5)


def test_the_inertia_of_the_straight_arm_is_that_of_a_rod_hub_and_payload(inspect):
    found = inspect("single-link-hub")

    assert found["rigid_inertia"][0][0] == pytest.approx(0.1 + 0.54 / 3 + 0.25, rel=1e-9)


def test_frequencies_leave_gravity_out(inspect):
    still = inspect("single-link-hub", "--pose", "joint1=0.3")
    heavy = inspect("single-link-hub", "--pose", "joint1=0.3", "--set", "gravity=[0,-9.81,0]")

    assert heavy["frequencies_locked"] == pytest.approx(still["frequencies_locked"], rel=1e-9)


def test_a_pose_may_name_elastic_coordinates(inspect):
    found = inspect("single-link-hub", "--no-foreshortening", "--pose", "joint1=0.0,link1.y.1=0.01")

    assert found["pose"] == {"joint1": 0.0, "link1.y.1": 0.01}
    assert found["tip"][1] > 0.01


@pytest.mark.parametrize(("angle", "warned"), [(3.0, False), (-3.1, True), (99, True)])
def test_a_pose_beyond_the_limits_of_a_joint_is_warned_of(flexctl, angle, warned):
    limits = ("--set", "link1.limits.position=[-3.0, 3.0]")
    said = flexctl("inspect", "single-link-hub", "--json", *limits, "--pose", f"joint1={angle}")

    assert said.status == 0
    words = f"warning: --pose: joint1 = {angle:g} rad lies beyond the limits of joint1, -3 to 3 rad"
    assert (words in said.err) == warned
    assert any("lies beyond" in line for line in json.loads(said.out)["warnings"]) == warned


def test_a_sliding_link_is_taken_at_its_free_length(inspect):
    short = inspect("theodore-ghosal-rrp", "-e", "2", "--pose", "joint3=0.5")
    long = inspect("theodore-ghosal-rrp", "-e", "2", "--pose", "joint3=1.0")
    ratio = np.divide(
        short["link_frequencies"]["link3"]["x"], long["link_frequencies"]["link3"]["x"]
    )

    assert ratio == pytest.approx(4.0, rel=1e-9)


def test_the_tip_load_of_a_sliding_link_is_its_payload_at_any_length(inspect):
    found = inspect("theodore-ghosal-rrp", "--pose", "joint3=0.5")

    assert found["tip_load"]["link3"]["x"]["M"] == pytest.approx(0.0828)


def test_the_mass_counts_links_hubs_and_payload(inspect):
    assert inspect("theodore-ghosal-rrp")["mass"] == pytest.approx(3.7051 + 0.331 + 0.4303 + 0.0828)


def test_a_person_reads_a_table(flexctl):
    said = flexctl("inspect", "theodore-ghosal-rrp", "-e", "3")

    assert "arm, joints held" in said.out
    assert "Hz" in said.out


def test_the_answer_can_be_kept(flexctl, tmp_path):
    said = flexctl("inspect", "single-link-hub", "--json", "--out", tmp_path / "arm.json")

    assert json.loads((tmp_path / "arm.json").read_text()) == json.loads(said.out)


def test_a_tapered_link_with_a_motor_is_reported_with_all_its_mass(inspect):
    found = inspect("tapered-link")
    # a cone from 0.848 to 0.212 kg/m has the mean of 1, 1/2 and 1/4 thirds of its thick end
    cone = 0.84823002 * (1 + 1 / 2 + 1 / 4) / 3
    # int m(x) x^2 dx of m = m0 (1 - x/2)^2 is m0 (1/3 - 1/4 + 1/20)
    turning = 0.84823002 * (1 / 3 - 1 / 4 + 1 / 20)

    assert found["mass"] == pytest.approx(cone + 0.3 + 0.25, rel=1e-7)
    inertia = 0.1 + turning + 0.3 / 4 + 2e-4 + 0.25
    assert found["rigid_inertia"][0][0] == pytest.approx(inertia, rel=1e-7)


@pytest.mark.parametrize(
    ("setting", "sentence"),
    [
        ("damping_ratio=0", "Euler-Bernoulli beams: no shear, no rotary inertia of the sections"),
        (
            "rotary_inertia.y=1e-4",
            "Euler-Bernoulli beams with rotary inertia of the sections in link1",
        ),
        ("shear_stiffness.y=1e4", "Euler-Bernoulli beams with shear in link1"),
        ("masses=*1", "link1: modes and elements of the non-uniform beam"),
        ("masses=*1", "link1: point masses on the beam are part of it"),
    ],
)
def test_what_is_assumed_of_a_line_is_said(inspect, setting, sentence):
    said = inspect("tapered-link", "--set", f"link1.{setting}")["assumptions"]

    assert any(sentence in assumption for assumption in said)


@pytest.mark.slow_but("-e 3")
@pytest.mark.parametrize("words", [("-m", "3"), ("-e", "3")], ids=" ".join)
def test_shear_and_turning_sections_lower_every_frequency(inspect, words):
    plain = inspect("tapered-link", *words)["frequencies_free"]
    stout = [
        inspect("tapered-link", *words, "--set", f"link1.{setting}")["frequencies_free"]
        for setting in ("rotary_inertia.y=1e-4", "shear_stiffness.y=3e4")
    ]

    assert (np.array(stout) < np.array(plain)).all()


LOAD = "link2.tip_load={ reference_pose = { joint3 = 1.0 }, include = ['M'] }"


def said_of(found, link):
    return next(words for words in found["assumptions"] if words.startswith(f"{link}: "))


def test_a_link_with_all_terms_says_what_its_shapes_carry_and_where(inspect):
    # link 3 of 0.4303 kg and 1.3 m, 1 m of it beyond the hub, with 0.0828 kg at its end
    found = inspect("theodore-ghosal-rrp", "--pose", "joint3=1.0")
    J = 0.331 * (1.0**3 + 0.3**3) / 3 + 0.0828

    assert found["tip_load_pose"]["link2"] == {"joint3": 1.0}
    assert found["tip_load"]["link2"]["z"]["J"] == pytest.approx(J)
    carried = (
        f"link2: clamped shapes with the tip load M = 0.5131 kg, J = 0 in y and {J:.4g} in z kg m^2"
    )
    assert said_of(found, "link2") == f"{carried}, taken at joint3 = 1"


def test_another_pose_than_that_of_the_load_is_said_with_the_load_there(inspect):
    found = inspect("theodore-ghosal-rrp", "--pose", "joint3=0.5")
    J = 0.331 * (0.5**3 + 0.8**3) / 3 + 0.0828 * 0.5**2

    assert found["tip_load_here"]["link2"]["z"]["J"] == pytest.approx(J)
    here = f"in this pose it is M = 0.5131 kg, J = 0 in y and {J:.4g} in z kg m^2"
    assert said_of(found, "link2").endswith(f"taken at joint3 = 1; {here}")


def test_terms_that_a_file_leaves_out_are_named(inspect):
    found = inspect("theodore-ghosal-rrp", "--set", LOAD, "--pose", "joint3=1.0")
    words = said_of(found, "link2")

    assert "tip load M = 0.5131 kg, taken at joint3 = 1; J, D left out; in this pose" in words
    assert found["tip_load"]["link2"]["z"]["J"] == 0
    assert found["tip_load_here"]["link2"]["z"]["J"] > 0.1


def test_a_link_without_tip_load_says_so_and_what_lies_beyond(inspect, tmp_path):
    text = (Path(load_model("theodore-ghosal-rrp").path)).read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if not line.startswith("tip_load")]
    path = tmp_path / "bare.toml"
    bare = "\n".join(lines)
    path.write_text(bare[: bare.index("[expect")], encoding="utf-8")
    found = inspect(path)

    assert found["tip_load_pose"] == {"link2": None, "link3": None}
    bare = "link3: clamped-free shapes, no tip_load"
    assert said_of(found, "link3") == f"{bare}; what lies beyond it in this pose has M = 0.0828 kg"


def test_a_sliding_link_says_at_which_length_its_shapes_are_taken(inspect):
    found = inspect("theodore-ghosal-rrp", "--pose", "joint3=0.5")

    assert found["tip_load_pose"]["link3"] == {"joint3": 1.0}
    assert said_of(found, "link3").startswith(
        "link3: clamped shapes with the tip load M = 0.0828 kg"
    )


def test_elements_assume_no_load(inspect):
    found = inspect("theodore-ghosal-rrp", "-e", "1")

    assert found["tip_load_pose"] == {"link2": None, "link3": None}
    assert not any(words.startswith("link2: ") for words in found["assumptions"])


COLUMN = """
summary = "A link that stands"
source = "own"
gravity = [0.0, -9.81, 0.0]
[[link]]
joint = "revolute"
length = 1.0
mass_per_length = 0.3
EI = { y = 20.0 }
joint_inertia = 0.05
[payload]
mass = 0.5
"""


@pytest.fixture
def column(tmp_path):
    path = tmp_path / "column.toml"
    path.write_text(COLUMN)
    return path


def standing(angle):
    return ("--pose", f"joint1={angle!r}")


def test_without_gravity_the_arm_rests_straight(inspect):
    found = inspect("single-link-hub")
    rest = found["at_rest"]

    assert rest["sag"] == [0.0]
    assert rest["load_share"] is rest["reason"] is None
    assert rest["frequencies_locked"] == pytest.approx(found["frequencies_locked"], rel=1e-9)
    assert rest["frequencies_free"] == pytest.approx(found["frequencies_free"], rel=1e-9)


def test_a_level_link_sags_as_beam_theory_says_and_hangs_from_its_joint(inspect, column):
    rest = inspect(column, "-e", "4", "--no-foreshortening")["at_rest"]

    assert rest["joint"] == [0.0]
    assert rest["lines"] == ["link1.y"]
    assert rest["sag"] == pytest.approx([-9.81 * (0.3 / 8 + 0.5 / 3) / 20], rel=1e-9)
    assert rest["holding_torque"] == pytest.approx([9.81 * (0.3 / 2 + 0.5)], rel=1e-9)


@pytest.mark.parametrize(("angle", "sign"), [(np.pi / 2, 1), (-np.pi / 2, -1)])
def test_a_pressed_column_rings_lower_and_a_hanging_one_higher(inspect, column, angle, sign):
    found = inspect(column, *standing(angle))
    rest = found["at_rest"]
    square = (rest["frequencies_locked"][0] / found["frequencies_locked"][0]) ** 2
    # Greenhill's and Euler's shares add up (Dunkerley); the square falls by nearly their sum
    share = 9.81 / 20 * (0.3 / 7.837 + 0.5 / (np.pi**2 / 4))

    assert square == pytest.approx(1 - sign * share, rel=0.01)
    assert rest["load_share"] == (pytest.approx(share, rel=0.02) if sign > 0 else None)


def test_a_standing_arm_with_free_joints_falls_and_says_so(inspect, column):
    rest = inspect(column, *standing(np.pi / 2))["at_rest"]
    rigid = np.sqrt(9.81 * (0.15 + 0.5) / (0.05 + 0.1 + 0.5))

    assert rest["frequencies_free"] is None
    assert rest["frequencies_locked"][0] > 0
    assert float(rest["reason"].split("growth rate ")[1].split()[0]) == pytest.approx(
        rigid, rel=0.01
    )


def test_a_hanging_arm_swings_as_a_pendulum(inspect, column):
    rest = inspect(column, *standing(-np.pi / 2))["at_rest"]

    assert rest["frequencies_free"][0] == pytest.approx(
        np.sqrt(9.81 * (0.15 + 0.5) / (0.05 + 0.1 + 0.5)), rel=0.01
    )
    assert rest["reason"] is None


def test_where_a_column_buckles_the_rest_of_the_answer_stands(flexctl, inspect, column):
    words = (*standing(np.pi / 2), "--set", "link1.EI.y=2")
    found, said = inspect(column, *words), flexctl("inspect", column, *words)
    rest = found["at_rest"]

    assert rest["frequencies_locked"] is rest["frequencies_free"] is rest["sag"] is None
    assert rest["load_share"] > 1
    assert "buckle" in rest["reason"]
    assert "\n" not in rest["reason"]
    assert found["frequencies_locked"][0] > 0
    assert said.status == 0
    assert "buckle under gravity" in " ".join(said.out.split())


def test_the_table_gives_sag_load_and_frequencies_under_gravity(flexctl, inspect, column):
    words = (*standing(1.2), "--no-foreshortening")
    rest, said = inspect(column, *words)["at_rest"], flexctl("inspect", column, *words)
    out = " ".join(said.out.split())

    assert f"link1.y {rest['sag'][0]:.3g}" in out
    assert f"load over buckling load {100 * rest['load_share']:.3g} %" in out
    assert f"under gravity, joints held {rest['frequencies_locked'][0]:.5g}" in out
    assert "foreshortening is left out of link1, and with it" in out


def test_filters_have_the_frequencies_that_are_listed(inspect):
    model, final = "vertical-2r-drives", [0.2, 0.9]
    listed = inspect(model, "--pose", f"joint1={final[0]},joint2={final[1]}")["filter_frequencies"]
    assert set(listed) == {"joint1", "joint2", "all"}
    assert ("rotor1" in listed["joint1"], "rotor2" in listed["joint1"]) == (True, False)
    design = load_design("drives-pd")
    for joint, mode, held in (
        ("joint1", "rotor1", "others"),
        ("joint2", "link2.y.1", "others"),
        ("joint1", "link1.y.1", "all"),
    ):
        one = {"kind": "notch", "frequency": mode, "joint": joint, "held": held}
        table = design.table() | {"filters": [one]}
        table["reference"] = {"kind": "quintic", "from": final, "to": final, "duration": 1.0}
        own = type(design).model_validate(table | {"name": "notched"})
        said = " ".join(design_controller(model, own, interpreted=True).assumptions)
        frequency = listed["all" if held == "all" else joint][mode]
        assert f"({joint} {frequency:.4g} to {frequency:.4g} rad/s)" in said


def test_labels_say_what_is_held(flexctl):
    said = flexctl("inspect", "vertical-2r-drives")
    out = " ".join(said.out.split())
    assert "under gravity, joints and rotors held" in out
    assert "under gravity, joints free, rotors held" in out
    assert 'frequency = joint1 joint2 held = "all"' in out
    assert "rotor2 is held" in out
    assert "Filters follow" not in flexctl("inspect", "single-link-hub").out
