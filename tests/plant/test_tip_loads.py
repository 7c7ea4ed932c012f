"""Loads that clamped-mass shapes assume: what lies beyond a link's tip, as it stands."""

import numpy as np
import pytest

from flexctl.plant.assembly import tip_load

EI = {"EI": {"y": 1.0}, "tip_load": {"reference_pose": {"joint2": 0.4, "joint3": 0.9}}}


def planar(make, second, third, payload, include=("M", "J", "D")):
    first = {"joint": "revolute", "length": 0.8, "mass_per_length": 0.5} | EI
    first["tip_load"] = first["tip_load"] | {"include": list(include)}
    joint = {"joint": "revolute"}
    return make["arm"]([first, joint | second, joint | third], payload=payload)


def physical(load):
    """Mass, inertia about the tip and first moment, of a link of 0.4 kg and 0.8 m."""
    return load.mass * 0.4, load.inertia * 0.4 * 0.64, load.offset * 0.4 * 0.8


def test_masses_at_the_ends_of_links_are_seen_as_theodore_and_ghosal_write(make):
    # J_L = I_2 + I_3 + m_2 l_2^2 + m_3 (l_2^2 + l_3^2 + 2 l_2 l_3 cos theta_3)
    l2, l3, m2, m3, I2, I3 = 0.6, 0.5, 1.3, 0.7, 0.2, 0.1
    second = {"dh": {"a": l2}, "hub": {"inertia": [0, 0, I2]}}
    third = {"dh": {"a": l3}, "hub": {"mass": m2, "inertia": [0, 0, I3]}}
    M, J, D = physical(tip_load(planar(make, second, third, {"mass": m3}), 0, "y"))

    assert pytest.approx(m2 + m3) == M
    inertia = I2 + I3 + m2 * l2**2 + m3 * (l2**2 + l3**2 + 2 * l2 * l3 * np.cos(0.9))
    assert pytest.approx(inertia) == J
    along = (m2 + m3) * l2 * np.cos(0.4) + m3 * l3 * np.cos(0.4 + 0.9)
    assert pytest.approx(along) == D


def test_uniform_rods_are_seen_by_steiners_rule(make):
    l2, l3, rho2, rho3 = 0.6, 0.5, 0.4, 0.3
    second = {"dh": {"a": l2}, "mass_per_length": rho2}
    third = {"dh": {"a": l3}, "mass_per_length": rho3}
    M, J, D = physical(tip_load(planar(make, second, third, {}), 0, "y"))
    m2, m3 = rho2 * l2, rho3 * l3
    middle = l2 * np.exp(0.4j) + l3 / 2 * np.exp(1.3j)

    assert pytest.approx(m2 + m3) == M
    assert pytest.approx(m2 * l2**2 / 3 + m3 * l3**2 / 12 + m3 * abs(middle) ** 2) == J
    assert pytest.approx(m2 * l2 / 2 * np.cos(0.4) + m3 * middle.real) == D


def test_terms_that_are_not_included_are_zero(make):
    second, third = {"dh": {"a": 0.6}, "mass_per_length": 0.4}, {"dh": {"a": 0.5}}
    load = tip_load(planar(make, second, third, {"mass": 0.2}, include=["M"]), 0, "y")

    assert load.mass > 0
    assert (load.inertia, load.offset) == (0, 0)


@pytest.mark.parametrize(
    ("drive", "inertia"),
    [
        ({"joint_inertia": 0.07}, 0.07),
        ({"flexible_joint": {"rotor_inertia": 0.02, "gear": 3.0, "stiffness": 9.0}}, 0.18),
    ],
    ids=["rigid", "flexible"],
)
def test_the_drive_of_the_next_joint_counts_where_asked(make, drive, inertia):
    second, third = {"dh": {"a": 0.6}, "mass_per_length": 0.4} | drive, {"dh": {"a": 0.5}}
    loads = [
        physical(tip_load(planar(make, second, third, {"mass": 0.2}, include=include), 0, "y"))
        for include in (["M", "J", "D"], ["M", "J", "D", "R"])
    ]

    np.testing.assert_allclose(np.subtract(loads[1], loads[0]), [0, inertia, 0], atol=1e-15)


def drive_of_second(make, joint, direction, alpha):
    """Inertia [kg m^2] that R adds to link 1, of 1 kg and 1 m, from a second joint with 0.07."""
    size = "total_length" if joint == "prismatic" else "length"
    pose = {"joint1": 1.0} if joint == "prismatic" else {}
    first = {"joint": joint, size: 1.0, "mass_per_length": 1.0, "EI": {direction: 1.0}}
    first |= {"dh": {"alpha": alpha}, "tip_load": {"reference_pose": pose, "include": ["R"]}}
    second = {"joint": "revolute", "joint_inertia": 0.07}
    return tip_load(make["arm"]([first, second]), 0, direction).inertia


@pytest.mark.parametrize(
    ("joint", "direction", "alpha", "share"),
    [
        ("revolute", "y", 0.3, 1.0),  # bends about the next axis, whatever the twist before it
        ("revolute", "z", 0.3, 0.0),
        ("prismatic", "x", 0.4, np.sin(0.4) ** 2),  # bends about y; the axis lies in y, z
        ("prismatic", "y", 0.4, 0.0),
    ],
)
def test_a_drive_counts_by_the_direction_of_its_axis(make, joint, direction, alpha, share):
    found = drive_of_second(make, joint, direction, alpha)

    assert found == pytest.approx(0.07 * share, abs=1e-15)


def test_a_last_link_carries_no_drive(make):
    link = {"joint": "revolute", "length": 1.0, "mass_per_length": 1.0, "EI": {"y": 1.0}}
    arm = make["arm"]([link | {"joint_inertia": 0.3, "tip_load": {"include": ["R"]}}])

    assert tip_load(arm, 0, "y").inertia == 0


def with_loads(arm, joints):
    """The same arm, where every flexible link assumes its load at these joints."""
    table = arm.table()
    pose = {f"joint{j + 1}": value for j, value in enumerate(joints)}
    table["link"] = [
        dict(link) | ({"tip_load": {"reference_pose": pose}} if "EI" in link else {})
        for link in table["link"]
    ]
    return type(arm).model_validate(table | {"name": arm.name})


@pytest.mark.parametrize(
    ("name", "j", "direction"),
    [
        ("spatial", 0, "y"),
        ("spatial", 0, "z"),
        ("spatial", 1, "x"),
        ("spatial", 1, "y"),
        ("sliding-first", 0, "x"),
        ("rrp", 1, "y"),
        ("rrp", 1, "z"),
        ("rrp", 2, "x"),
    ],
)
def test_loads_are_sums_over_the_points_beyond_the_tip(name, j, direction, arms, witness):
    joints = {"spatial": [0.3, 0.4, -0.6], "sliding-first": [0.7, 0.5], "rrp": [0.2, 0.5, 0.8]}
    arm = with_loads(arms[name], joints[name])
    mass, inertia, offset = witness(arm, "elements").load(j, direction, joints[name])
    load = tip_load(arm, j, direction)

    assert load.mass == pytest.approx(mass, rel=1e-12)
    assert load.inertia == pytest.approx(inertia, rel=1e-12, abs=1e-14)
    assert load.offset == pytest.approx(offset, rel=1e-12, abs=1e-14)


def frequencies(plant, j):
    """Clamped-mass frequencies [Hz] that the shapes of link j belong to."""
    link, shapes = plant.bodies[j].link, plant.bodies[j].planes["y"]
    unit = np.sqrt(link.EI["y"] / link.mass_per_length) / link.length**2
    return shapes.beta**2 * unit / (2 * np.pi)


@pytest.mark.parametrize(("j", "printed"), [(0, [0.48, 1.80]), (1, [2.18, 15.91])])
def test_the_two_link_arm_of_de_luca_and_siciliano(j, printed, plant_named):
    assert frequencies(plant_named("two-link-file"), j) == pytest.approx(printed, abs=0.005)


def test_the_witness_sees_the_loads_of_the_two_link_arm_as_by_hand(witness_of):
    # hub 1 kg, link 0.1 kg, payload 0.1 kg beyond link 1, at right angles; lines of 0.1 kg, 0.5 m
    J1 = 0.1 + 0.1 * 0.25 / 3 + 0.1 * 0.25 + 0.0005
    points = witness_of("two-link-file")

    assert points.assumed(0, "y") == pytest.approx((1.2 / 0.1, J1 / 0.025, 0.0))
    assert points.assumed(1, "y") == pytest.approx((1.0, 0.0005 / 0.025, 0.0))


def test_joints_that_a_reference_pose_leaves_out_stand_at_zero(make):
    # as the schema says of `reference_pose`, whatever the limits of the joint
    def inertia(limits):
        third = {"dh": {"a": 0.5}, "mass_per_length": 0.3, "limits": {"position": limits}}
        arm = planar(make, {"dh": {"a": 0.6}}, third, {})
        table = arm.table() | {"name": "arm"}
        table["link"][0]["tip_load"] = {"reference_pose": {"joint2": 0.4}}
        return tip_load(type(arm).model_validate(table), 0, "y").inertia

    assert inertia([1.0, 2.0]) == pytest.approx(inertia([-1.0, 1.0]))
