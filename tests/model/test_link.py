"""A link's schema: of every rule the smallest value that it refuses and the smallest it takes."""

import numpy as np
import pytest
from pydantic import ValidationError

from flexctl.model.link import PLANES, CarriedMass, FlexibleJoint, Link, RigidBody
from flexctl.model.profile import UNIFORM, Profile
from flexctl.model.record import RefusalError

TINY = float(np.nextafter(0, 1))
BELOW_1, ABOVE_1 = float(np.nextafter(1, 0)), float(np.nextafter(1, 2))
HINGE = {"name": "hinge", "joint": "revolute"}
ROD = {"name": "rod", "joint": "revolute", "length": 0.8, "mass_per_length": 0.5}
BEAM = ROD | {"EI": {"y": 3.0, "z": 4.0}}
SLIDE = {"name": "slide", "joint": "prismatic"}
BOOM = SLIDE | {"total_length": 1.2, "mass_per_length": 0.5, "EI": {"x": 3.0, "y": 4.0}}
SPRING = {"rotor_inertia": 0.1, "stiffness": 50.0}
POINT = {"x": 0.5, "mass": 0.2}


def changed(table, key, value):
    """The table with a nested value set; numbers in a key count entries of a list."""
    first, _, rest = key.partition(".")
    if isinstance(table, list):
        return [changed(e, rest, value) if k == int(first) else e for k, e in enumerate(table)]
    return table | {first: changed(table.get(first, {}), rest, value) if rest else value}


def without(table, key):
    return {k: v for k, v in table.items() if k != key}


def refused(table):
    """Keys that a link's table is refused for; none where it is taken."""
    try:
        Link.model_validate(table)
    except RefusalError as error:
        return {error.key}
    except ValidationError as error:
        keys = set()
        for fault in error.errors():
            cause = fault.get("ctx", {}).get("error")
            below = [cause.key] if isinstance(cause, RefusalError) and cause.key else []
            keys.add(".".join([*map(str, fault["loc"]), *below]))
        return keys
    return set()


POSITIVE = [
    (BEAM, "length"), (BEAM, "EI.y"), (BEAM, "EI.z"), (BOOM, "total_length"), (BOOM, "EI.x"),
    (BEAM | {"rotary_inertia": {"y": 1e-4}}, "rotary_inertia.y"),
    (BEAM | {"shear_stiffness": {"y": 1e4}}, "shear_stiffness.y"),
    (BEAM | {"torsion": {"GJ": 1.0, "polar_inertia": 1e-3}}, "torsion.GJ"),
    (BEAM | {"torsion": {"GJ": 1.0, "polar_inertia": 1e-3}}, "torsion.polar_inertia"),
    (BEAM | {"flexible_joint": SPRING}, "flexible_joint.rotor_inertia"),
    (BEAM | {"flexible_joint": SPRING}, "flexible_joint.stiffness"),
    (BEAM | {"flexible_joint": SPRING}, "flexible_joint.gear"),
    (BEAM | {"limits": {}}, "limits.rate"), (BEAM | {"limits": {}}, "limits.torque"),
]  # fmt: skip
NOT_NEGATIVE = [
    (ROD, "mass_per_length"), (BEAM, "joint_inertia"), (BEAM, "hub.mass"),
    (BEAM, "damping_ratio"), (BEAM | {"flexible_joint": SPRING}, "flexible_joint.damping"),
    (BEAM | {"masses": [POINT]}, "masses.0.mass"),
]  # fmt: skip
ANY_NUMBER = [(HINGE, "dh.a"), (BEAM, "dh.alpha"), (BEAM, "dh.d"), (BEAM, "dh.theta")]
NUMBERS = POSITIVE + NOT_NEGATIVE + ANY_NUMBER
NO_NUMBER = [np.nan, np.inf, -np.inf, "1", True, None, [["1"]], {"a": 1.0}]


def ids(value):
    return value if isinstance(value, str) else value["name"] if isinstance(value, dict) else None


@pytest.mark.parametrize(("table", "key"), POSITIVE, ids=ids)
def test_a_positive_number_is_one(table, key):
    follows = {"dh.a"} if key == "length" else set()  # dh.a is the length, unless written
    assert refused(changed(table, key, TINY)) - follows == set()
    for bad in (0.0, -TINY, 0, -1):
        assert refused(changed(table, key, bad)) == {key}


@pytest.mark.parametrize(("table", "key"), NOT_NEGATIVE, ids=ids)
def test_zero_is_not_negative(table, key):
    bad = [-TINY] if key == "damping_ratio" else -TINY
    entry = ".0" if key == "damping_ratio" else ""
    for good in (0.0, 0, TINY):
        assert refused(changed(table, key, good)) == set()
    assert key + entry in refused(changed(table, key, bad))


@pytest.mark.parametrize(("table", "key"), ANY_NUMBER, ids=ids)
def test_other_numbers_may_be_any(table, key):
    for good in (-3.5, 0, 2.5):
        assert refused(changed(table, key, good)) == set()


@pytest.mark.parametrize("bad", NO_NUMBER, ids=repr)
@pytest.mark.parametrize(("table", "key"), NUMBERS, ids=ids)
def test_what_is_no_finite_number_is_refused(table, key, bad):
    optional = {"length", "total_length", "torsion.GJ", "limits.rate", "limits.torque"}
    varying = ("mass_per_length", "EI", "rotary_inertia", "shear_stiffness", "torsion")
    if bad is None and key in optional:
        return
    found = refused(changed(table, key, bad))
    assert found
    if not (isinstance(bad, dict) and key.startswith(varying)):  # that may be a profile
        assert any(name.startswith(key.partition(".")[0]) for name in found)


def test_a_damping_ratio_is_below_one_for_every_mode():
    assert refused(BEAM | {"damping_ratio": [0.0, BELOW_1]}) == set()
    assert refused(BEAM | {"damping_ratio": [0.0, 1.0]}) == {"damping_ratio.1"}
    assert refused(BEAM | {"damping_ratio": []}) == {"damping_ratio"}
    assert Link.model_validate(BEAM | {"damping_ratio": 0.25}).damping_ratio == (0.25,)
    assert Link.model_validate(BEAM).damping_ratio == (0.0,)


@pytest.mark.parametrize("name", ["a", "A1", "a_", "link1", "Z9_x"])
def test_a_name_begins_with_a_letter(name):
    assert refused(BEAM | {"name": name}) == set()


@pytest.mark.parametrize("name", ["", "1a", "_a", "a.b", "a b", "a-b", "ä", 3])
def test_a_name_is_letters_digits_and_underscores(name):
    assert refused(BEAM | {"name": name}) == {"name"}


@pytest.mark.parametrize(("joint", "planes"), [("revolute", "yz"), ("prismatic", "xy")])
@pytest.mark.parametrize("key", ["EI", "rotary_inertia", "shear_stiffness"])
def test_a_link_bends_across_its_own_line(joint, planes, key):
    table = BEAM if joint == "revolute" else BOOM
    assert "".join(PLANES[joint]) == planes
    for direction in "xyz":
        found = refused(table | {key: {direction: 1.0}})
        if joint == "prismatic" and key != "EI":  # a line that slides is a plain one
            assert found in ({key}, {f"{key}.{direction}"})
        elif direction not in planes:
            assert found == {f"{key}.{direction}"}
        else:
            assert found == set()


def test_a_turning_link_has_a_length_and_a_sliding_one_a_total_length():
    assert refused(BEAM | {"total_length": 1.0}) == {"total_length"}
    assert refused(HINGE | {"total_length": 1.0}) == {"total_length"}
    assert refused(BOOM | {"length": 1.0}) == {"length"}
    assert refused(SLIDE | {"length": 1.0}) == {"length"}


def test_what_bends_or_twists_needs_a_length_and_a_mass():
    for flexible in ({"EI": {"y": 1.0}}, {"torsion": {"GJ": 1.0, "polar_inertia": 1e-3}}):
        assert refused(ROD | flexible) == set()
        assert refused(without(ROD, "length") | flexible) == {"length"}
        assert refused(without(ROD, "length") | {"dh": {"a": 0.8}} | flexible) == {"length"}
        assert refused(without(ROD, "mass_per_length") | flexible) == {"mass_per_length"}
        assert refused(ROD | {"mass_per_length": 0.0} | flexible) == {"mass_per_length"}
    assert refused(HINGE) == set()


def test_a_rigid_link_with_mass_needs_a_length_from_somewhere():
    heavy = HINGE | {"mass_per_length": TINY}
    assert refused(heavy) == {"length"}
    for span in ({"length": 0.3}, {"dh": {"a": -0.3}}, {"dh": {"d": 0.3}}):
        assert refused(heavy | span) == set()
    assert refused(SLIDE) == set()
    assert refused(SLIDE | {"mass_per_length": TINY}) == {"total_length"}
    assert refused(SLIDE | {"mass_per_length": TINY, "total_length": 0.1}) == set()
    assert refused(without(BOOM, "total_length")) == {"total_length"}
    assert refused(SLIDE | {"EI": {"x": 1.0}}) == {"total_length"}


def test_the_beam_of_a_link_lies_along_its_own_axis():
    assert refused(BEAM | {"dh": {"a": 0.8}}) == set()
    assert refused(BEAM | {"dh": {"a": float(np.nextafter(0.8, 1))}}) == {"dh.a"}
    assert refused(BEAM | {"dh": {"a": 0.0}}) == {"dh.a"}
    assert refused(ROD | {"dh": {"a": 0.3}}) == set()
    assert refused(BOOM | {"dh": {"a": 0.0}}) == set()
    assert refused(BOOM | {"dh": {"a": TINY}}) == {"dh.a"}
    assert refused(without(BOOM, "EI") | {"dh": {"a": 0.3}}) == set()


@pytest.mark.parametrize(
    ("d", "position", "good"),
    [
        (0.0, [0.0, 1.2], True),
        (0.0, [-TINY, 1.2], False),
        (0.0, [0.0, 1.2 * (1 + 0.9e-12)], True),
        (0.0, [0.0, 1.2 * (1 + 2e-12)], False),
        (0.25, [-0.25, 0.95], True),
        (0.25, [-0.2500001, 0.95], False),
        (0.25, [-0.25, 0.9500001], False),
        (-0.25, [0.25, 1.45], True),
        (-0.25, [0.2499999, 1.45], False),
    ],
)
def test_a_beam_slides_within_its_length(d, position, good):
    table = BOOM | {"dh": {"d": d}, "limits": {"position": position}}
    assert refused(table) == (set() if good else {"limits.position"})
    endless = SLIDE | {"dh": {"d": d}, "limits": {"position": position}}
    assert refused(endless) == set()


@pytest.mark.parametrize(
    ("position", "good"),
    [
        ([0.0, TINY], True), ([-3.1, 3.2], True), ([1.0, 1.0], False), ([1.0, BELOW_1], False),
        ([0.0], False), ([0.0, 1.0, 2.0], False),
    ],
)  # fmt: skip
def test_limits_go_from_the_lowest_to_the_highest(position, good):
    table = BEAM | {"limits": {"position": position}}
    assert refused(table) == (set() if good else {"limits.position"})


LINE = {
    "masses": [POINT],
    "rotary_inertia": {"y": 1e-4},
    "shear_stiffness": {"y": 1e4},
    "torsion": {"polar_inertia": 1e-3},
}


@pytest.mark.parametrize("key", LINE)
def test_a_line_that_slides_is_a_plain_one(key):
    assert refused(BEAM | {key: LINE[key]}) == set()
    assert refused(BOOM | {key: LINE[key]}) == {key}
    nothing = {"masses": [], "rotary_inertia": {}, "shear_stiffness": {}, "torsion": None}
    assert refused(BOOM | {key: nothing[key]}) == set()


@pytest.mark.parametrize("key", ["masses", "rotary_inertia", "torsion"])
def test_a_line_along_its_joints_axis_carries_nothing(key):
    upright = without(ROD, "length") | {"dh": {"d": 0.8}}
    assert refused(upright) == set()
    assert refused(upright | {key: LINE[key]}) == {key}
    assert refused(upright | {"dh": {"d": 0.8, "a": 1e-9}} | {key: LINE[key]}) == set()
    assert refused(ROD | {"dh": {"d": 0.0}} | {key: LINE[key]}) == set()
    assert refused(BEAM | {"dh": {"d": 0.8}} | {key: LINE[key]}) == set()  # it bends: along x


def test_masses_are_on_a_line_that_has_mass():
    light = ROD | {"mass_per_length": 0.0, "masses": [POINT]}
    assert refused(light) == {"mass_per_length"}
    assert refused(light | {"mass_per_length": TINY}) == set()
    assert refused(light | {"masses": []}) == set()


def test_sections_shear_where_they_bend():
    table = ROD | {"EI": {"y": 3.0}}
    assert refused(table | {"shear_stiffness": {"y": 1e4}}) == set()
    assert refused(table | {"shear_stiffness": {"z": 1e4}}) == {"shear_stiffness.z"}
    assert refused(ROD | {"shear_stiffness": {"y": 1e4}}) == {"shear_stiffness.y"}


def test_what_is_refused_is_counted_in_words():
    for count, word in ((1, "1 entry"), (2, "2 entries")):
        with pytest.raises((RefusalError, ValidationError), match=word):
            Link.model_validate(BOOM | {"masses": [POINT] * count})


PROFILE = {"x": [0.0, 0.25, 1.0], "value": [4.0, 2.0, 2.0]}


@pytest.mark.parametrize(
    "key", ["mass_per_length", "EI.y", "rotary_inertia.y", "shear_stiffness.y", "torsion.GJ"]
)
def test_what_varies_stands_with_its_mean(key):
    table = BEAM | LINE | {"masses": [], "torsion": {"polar_inertia": 1e-3, "GJ": 1.0}}
    link = Link.model_validate(changed(table, key, PROFILE))
    mean = (0.25 * 3.0 + 0.75 * 2.0) / 1.0
    found = link.model_dump()
    for part in key.split("."):
        found = found[part]

    assert found["value"] == pytest.approx(PROFILE["value"])  # as the file wrote it
    assert link.profile(key).value == pytest.approx([v / mean for v in PROFILE["value"]])
    assert link.profile(key).mean == pytest.approx(1.0)
    assert link.varies
    assert not link.plain
    assert link.profile("EI.z") == UNIFORM


@pytest.mark.parametrize("key", ["mass_per_length", "EI.x"])
def test_a_line_that_slides_does_not_vary(key):
    assert refused(changed(BOOM, key, PROFILE)) == {key}


@pytest.mark.parametrize(
    ("change", "plain"),
    [
        ({}, True), ({"masses": [POINT]}, False), ({"rotary_inertia": {"y": 1e-4}}, False),
        ({"shear_stiffness": {"y": 1e4}}, False), ({"mass_per_length": PROFILE}, False),
    ],
)  # fmt: skip
def test_a_plain_line_is_uniform_and_carries_nothing(change, plain):
    link = Link.model_validate(BEAM | change)
    assert link.plain is plain
    assert link.varies is ("mass_per_length" in change)


def test_the_mass_of_a_line_is_its_own_and_what_it_carries():
    link = Link.model_validate(BEAM | {"masses": [POINT, POINT | {"mass": 0.07}]})
    assert link.line_mass == pytest.approx(0.5 * 0.8 + 0.2 + 0.07)


@pytest.mark.parametrize(
    ("table", "length", "a"),
    [
        (BEAM, 0.8, 0.8), (ROD, 0.8, 0.0), (ROD | {"dh": {"a": 0.3}}, 0.8, 0.3), (HINGE, 0.0, 0.0),
        (HINGE | {"dh": {"a": -0.3}}, 0.3, -0.3), (HINGE | {"dh": {"d": -0.4}}, 0.4, 0.0),
        (HINGE | {"dh": {"a": 0.3, "d": 0.4}}, 0.3, 0.3), (BOOM, 1.2, 0.0), (SLIDE, 0.0, 0.0),
        (SLIDE | {"dh": {"a": 0.3}}, 0.0, 0.3),
    ],
)  # fmt: skip
def test_a_link_is_as_long_as_its_line(table, length, a):
    link = Link.model_validate(table)
    assert link.length == length
    assert link.dh.a == a
    assert link.rigid.dh.a == a
    assert link.rigid.length == length
    assert not link.rigid.flexible


def test_a_link_twists_or_bends_or_neither():
    twist = {"torsion": {"GJ": 2.5, "polar_inertia": 1e-3}}
    both = Link.model_validate(BEAM | twist)
    assert both.rigidities == {"y": 3.0, "z": 4.0, "twist": 2.5}
    assert Link.model_validate(ROD | twist).rigidities == {"twist": 2.5}
    assert Link.model_validate(ROD | LINE | {"shear_stiffness": {}}).rigidities == {}
    assert both.rigid.rigidities == {}
    assert both.rigid.torsion.polar_inertia == 1e-3
    assert [Link.model_validate(t).flexible for t in (both.table(), ROD | twist, ROD)] == [
        True,
        True,
        False,
    ]


def test_a_rotor_counts_behind_its_gear():
    assert FlexibleJoint(rotor_inertia=0.2, gear=3.0, stiffness=1.0).inertia == pytest.approx(1.8)
    assert FlexibleJoint(rotor_inertia=0.2, stiffness=1.0).inertia == 0.2
    assert not FlexibleJoint(rotor_inertia=0.2, stiffness=1.0).carried
    assert FlexibleJoint(rotor_inertia=0.2, stiffness=1.0).damping == 0.0


def test_a_link_is_as_simple_as_its_table():
    link = Link.model_validate(HINGE)
    assert link.foreshortening is True
    assert link.damping_ratio == (0.0,)
    assert (link.mass_per_length, link.joint_inertia, link.hub.mass) == (0.0, 0.0, 0.0)
    assert (link.dh.a, link.dh.alpha, link.dh.d, link.dh.theta) == (0.0, 0.0, 0.0, 0.0)
    assert (link.hub.com, link.hub.inertia) == ((0.0,) * 3, (0.0,) * 3)


@pytest.mark.parametrize("solid", [RigidBody, lambda **t: CarriedMass(x=0.5, **t)])
@pytest.mark.parametrize(
    ("inertia", "good"),
    [
        ((1.0, 1.0, 2.0), True),
        ((2.0 * (1 + 0.9e-9), 1.0, 1.0), True),
        ((1.0, 2.0 * (1 + 2e-9), 1.0), False),
        ((0.0, 0.0, 7.0), True),
        ((7.0, 0.0, 1e-9), False),
        ((1.0, 1.0, 0.0), True),
        ((1.0, 1.1, 0.0), False),
        ((1.0, 1.0, -TINY), False),
        ((1.0, 1.0), False),
        ((1.0, 1.0, 1.0, 1.0), False),
        ((0.0, 0.0, 0.0), True),
    ],
)
def test_no_inertia_is_larger_than_the_other_two_together(solid, inertia, good):
    if good:
        assert solid(inertia=inertia).inertia == inertia
        return
    with pytest.raises((RefusalError, ValidationError), match="inertia"):
        solid(inertia=inertia)


@pytest.mark.parametrize(
    ("x", "good"), [(0.0, True), (1.0, True), (-TINY, False), (ABOVE_1, False), (0.5, True)]
)
def test_a_mass_is_on_the_line(x, good):
    assert bool(refused(BEAM | {"masses": [{"x": x, "mass": 0.1}]})) is not good
    assert CarriedMass(x=0.5).mass == 0.0


def test_a_profile_of_another_profile_is_refused_with_its_key():
    assert refused(changed(BEAM, "EI.y", PROFILE | {"power": 5})) == {"EI.y.power"}
    assert Profile(**{k: tuple(v) for k, v in PROFILE.items()}).mean == pytest.approx(2.25)
