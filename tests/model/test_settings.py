import re

import pytest

from flexctl.errors import InputError
from flexctl.model.arm import Arm
from flexctl.model.lookup import load_design, load_model
from flexctl.model.settings import apply_settings, with_options, with_value


@pytest.fixture
def arm(model_text, write):
    return load_model(write(model_text, "arm.toml"))


@pytest.mark.parametrize(
    ("setting", "found", "expected"),
    [
        ("upper.EI=*0.6", lambda a: a.links[1].EI, {"y": 699.0, "z": 660.0}),
        ("link[2].EI.y = *2", lambda a: a.links[1].EI, {"y": 2330.0, "z": 1100.0}),
        ("upper.EI.y=900", lambda a: a.links[1].EI, {"y": 900.0, "z": 1100.0}),
        ("payload.mass=+40%", lambda a: a.payload.mass, 0.14),
        ("payload.mass=-40%", lambda a: a.payload.mass, 0.06),
        ("payload={mass=2}", lambda a: a.payload.mass, 2),
        ("link1.damping_ratio=0.005", lambda a: a.links[0].damping_ratio, (0.005,)),
        ("upper.damping_ratio=*3", lambda a: a.links[1].damping_ratio, (0.03, 0.06)),
        ("gravity=[0, 0, -1.6]", lambda a: a.gravity, (0, 0, -1.6)),
        ("gravity=*2", lambda a: a.gravity, (0, 0, -19.62)),
        (
            "links.mass_per_length=*2",
            lambda a: [k.mass_per_length for k in a.links],
            [74, 0.66, 0.66],
        ),
        ("link*.EI=*0.5", lambda a: a.links[2].EI, {"x": 582.5}),
        ("link1.limits.torque=5", lambda a: a.links[0].limits.torque, 5),
        ("truth.order=6", lambda a: a.truth.order, 6),
        ("upper.length=1.2", lambda a: (a.links[1].length, a.links[1].dh.a), (1.2, 1.2)),
        ("upper.dh.a=*1.2", lambda a: (a.links[1].length, a.links[1].dh.a), (1.2, 1.2)),
    ],
)
def test_a_setting_changes_what_it_names(arm, setting, found, expected):
    assert found(arm) != pytest.approx(expected)
    assert found(apply_settings(arm, [setting])) == pytest.approx(expected)


def test_a_setting_leaves_everything_else_alone(arm):
    changed = apply_settings(arm, ["payload.mass=0.2"])

    assert changed.model_copy(update={"payload": arm.payload}) == arm
    assert apply_settings(changed, ["payload.mass=0.1"]) == arm
    assert apply_settings(arm, []) is arm


def test_settings_apply_in_order_and_are_checked_together(arm):
    changed = apply_settings(
        arm, ["upper.EI=*0.5", "upper.EI.y=*0.5", "upper.length=2", "upper.dh.a=2"]
    )

    assert list(changed.links[1].EI.values()) == pytest.approx([291.25, 550.0])
    assert changed.links[1].dh.a == 2


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("upper.EIx=*0.6", "upper.EIx: expected a known key (nearest: EI), got EIx"),
        ("upper.EI.x=*0.6", "upper.EI.x: expected a known key (one of: y, z), got x"),
        (
            "upper.EIx=1",
            "with setting upper.EIx=1: link[2].EIx: expected a known key (nearest: EI)",
        ),
        ("uper.EI=1", "uper.EI: expected a known key (nearest: upper), got uper"),
        ("paylod.mass=1", "paylod.mass: expected a known key (nearest: payload), got paylod"),
        ("link[4].EI=1", "link[4].EI: expected a known key ("),
        ("gainz.Gp=1", "gainz.Gp: expected a known key (nearest: gains), got gainz"),
        ("motor.back_emf=1", "motor.back_emf: expected a known key (one of: base, "),  # no motor
        ("summary=1", "summary: expected a known key ("),
        ("upper=*2", "upper: expected a key of the link (one of: name, joint, dh, "),
        ("link1.EI=*0.6", "link1.EI: expected numbers to scale, got nothing"),
        ("link1.limits.rate=*2", "link1.limits.rate: expected numbers to scale, got nothing"),
        ("link1.name=*2", "link1.name: expected numbers to scale, got nothing"),
        ("gravity.x=1", "gravity.x: expected no x, as gravity is not a table"),
        (
            "payload.mass=-140%",
            "with setting payload.mass=-140%: payload.mass: expected at least 0, got",
        ),
        ("payload.mass=nan", "payload.mass: expected a finite number, got NaN"),
        ("payload.mass=*nan", "payload.mass=*nan: expected a number to scale by, got '*nan'"),
        ("payload.mass=+x%", "expected a number to scale by, got '+x%'"),
        ("payload.mass=*1e400", "expected a number to scale by, got '*1e400'"),
        ("payload.mass=heavy", "expected a TOML value"),
        ("payload.mass=1\nx = 2", "expected a TOML value"),
        ("payload.mass", "setting: expected KEY=VALUE"),
        ("=3", "setting: expected KEY=VALUE"),
        ("payload.mass=", "setting: expected KEY=VALUE"),
        ("link1.flexible_joint.stiffness=*2", "expected numbers to scale, got nothing"),
        ("link1.flexible_joint={}", "flexible_joint.rotor_inertia: expected a value"),
        ("link3.total_length=1", "link[3].limits.position: expected a free length"),
    ],
)
def test_a_setting_that_makes_no_sense_is_refused(arm, setting, message):
    with pytest.raises(InputError) as caught:
        apply_settings(arm, [setting])

    assert message in str(caught.value)


@pytest.mark.parametrize("setting", ["payload.mas=*2", "payload.mass=-1", "payload", "payload=x"])
def test_a_refused_setting_names_the_option_that_it_came_from(arm, setting):
    with pytest.raises(InputError, match="--truth-set"):
        apply_settings(arm, [setting], option="--truth-set")


@pytest.mark.parametrize(
    "settings",
    [
        ["upper.dh=5", "upper.length=1"],
        ["upper.dh.a=2", "upper.dh={}"],
        ["upper.EI=3", "upper.EI.y=2"],
        ["payload=3", "payload.mass=*2"],
    ],
)
def test_settings_that_contradict_each_other_are_refused(arm, settings):
    with pytest.raises(InputError):
        apply_settings(arm, settings)


def test_options_reach_all_links(arm):
    changed = with_options(arm, foreshortening=False, damping=0.03)

    assert {link.foreshortening for link in changed.links} == {False}
    assert {link.damping_ratio for link in changed.links} == {(0.03,)}
    assert with_options(arm, foreshortening=None, damping=None) is arm
    only = with_options(arm, foreshortening=False, damping=None)
    assert only.links[1].damping_ratio == arm.links[1].damping_ratio


def test_an_impossible_damping_is_refused(arm):
    with pytest.raises(InputError, match=r"damping_ratio\[1\]: expected less than 1, got 1.5"):
        with_options(arm, foreshortening=None, damping=1.5)


def test_scaling_all_springs_passes_over_rigid_joints():
    spring = "link2.flexible_joint={rotor_inertia = 0.02, stiffness = 50.0}"
    arm = load_model("subudhi-morris-2r-rigid-joints")
    changed = apply_settings(arm, [spring, "links.flexible_joint.stiffness=*2"])

    assert changed.links[0].flexible_joint is None
    assert changed.links[1].flexible_joint.stiffness == 100.0


def test_a_length_that_follows_from_dh_a_can_be_scaled():
    rod = {"name": "rod", "joint": "revolute", "dh": {"a": -0.3}, "mass_per_length": 0.5}
    arm = Arm.model_validate(
        {"name": "arm", "summary": "a rod", "source": "own", "gravity": [0, 0, 0], "link": [rod]}
        | {"payload": {}}
    )
    assert apply_settings(arm, ["rod.length=*2"]).links[0].length == pytest.approx(0.6)
    assert apply_settings(arm, ["rod.dh.d=0.4"]).links[0].dh.a == -0.3


@pytest.mark.parametrize(
    ("setting", "expected"),
    [
        ("joint1.dh.alpha=*2", "did you mean {0}.dh.alpha?"),
        ("dh.alpha=*2", "did you mean {0}.dh.alpha?"),
        ("link[0].dh.alpha=*2", "did you mean {0}.dh.alpha?"),
        ("link[9].dh.alpha=0.1", "did you mean {0}.dh.alpha?"),
        ("{0}.alpha=*2", "did you mean {0}.dh.alpha?"),
        ("{0}.alpha=0.1", "did you mean dh.alpha?"),
        ("gains.Gp=*2", "a number of the arm (gains belongs to a design's file), got gains.Gp"),
        ("Gains.Gp=*2", "nearest: gains"),
    ],
)
def test_a_path_that_is_none_names_the_right_one(setting, expected):
    arm = load_model("planar-two-link")
    name = arm.links[0].name
    with pytest.raises(InputError, match=re.escape(expected.format(name))):
        apply_settings(arm, [setting.format(name)])


def test_a_path_of_a_design_that_is_none_names_the_right_one():
    with pytest.raises(InputError, match=r"a table gains\[1\] \(did you mean gains\.Gp\?\)"):
        with_value(load_design("hub-pd"), "gains[1].Gp", 2.0)
