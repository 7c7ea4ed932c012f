"""[[filters]] and [loop] of design files: what is refused, and keys of their numbers."""

import numpy as np
import pytest

from flexctl.errors import InputError
from flexctl.model.compatibility import check_design
from flexctl.model.design import Design
from flexctl.model.design_writing import design_text
from flexctl.model.refusals import build_file
from flexctl.model.settings import design_value, is_of_design, with_value
from tests.arms import single_link

TABLE = {"summary": "x", "source": "own", "model": "a", "method": "joint-pd"}
TABLE |= {"gains": {"Gp": 1.0, "Gv": 1.0}}
TABLE["reference"] = {"kind": "cycloid", "from": [0.0], "to": [1.0], "duration": 1.0}


def build(*filters, **more):
    return build_file(Design, TABLE | {"filters": list(filters)} | more, "trial", None)


NOTCH = {"kind": "notch", "frequency": 40.0}
LOW = {"kind": "low-pass", "frequency": 100.0}
REFUSED = [
    ({"kind": "low"}, "kind: expected one of 'low-pass', 'lead', 'notch' or 'roll-off'"),
    ({"kind": "notch"}, "frequency: expected a value, got nothing"),
    (NOTCH | {"frequency": 0.0}, "frequency: expected a number above 0 .rad/s., or the name of"),
    (NOTCH | {"frequency": -3}, "frequency: expected a number above 0"),
    (NOTCH | {"frequency": float("inf")}, "frequency: expected a number above 0.*, got Infinity$"),
    (NOTCH | {"order": 2}, "order: expected no such key, as kind is notch, got 2"),
    (NOTCH | {"zero_damping": 0.6}, "zero_damping: expected less than pole_damping, 0.5, got 0.6"),
    (NOTCH | {"pole_damping": 0.03}, "pole_damping: expected more than zero_damping .0.05 by def"),
    (NOTCH | {"held": "all"}, "held: expected no such key, as frequency is a number"),
    (LOW | {"order": 3}, "order: expected 1 or 2 .kind roll-off has more., got 3"),
    (LOW | {"order": 1, "damping_ratio": 0.7}, "damping_ratio: expected no such key, as order is"),
    (LOW | {"ratio": 3.0}, "ratio: expected no such key, as kind is low-pass"),
    (LOW | {"frequncy": 3.0}, "frequncy|frequency"),
    ({"kind": "roll-off", "frequency": 9.0, "order": 9}, "order: expected at most 8, got 9"),
    ({"kind": "lead", "frequency": 9.0}, "phase_lead: expected a value .or ratio., got nothing"),
    (
        {"kind": "lead", "frequency": 9.0, "ratio": 2.0, "phase_lead": 0.3},
        "ratio: expected no such key beside phase_lead",
    ),
    ({"kind": "lead", "frequency": 9.0, "ratio": 1.0}, "ratio: expected more than 1"),
    ({"kind": "lead", "frequency": 9.0, "phase_lead": 2.0}, "phase_lead: expected less than 1.57"),
]


@pytest.mark.parametrize(("one", "message"), REFUSED)
def test_a_filter_that_makes_no_sense_is_refused(one, message):
    with pytest.raises(InputError, match=message) as refusal:
        build(LOW, one)
    assert "trial: filters[2]" in str(refusal.value)
    assert len(str(refusal.value).splitlines()) == 1


@pytest.mark.parametrize(
    ("loop", "message"),
    [
        ({"sample_time": 0.05}, "filters.1..frequency: expected less than 62.8319 rad/s .pi/T"),
        ({"discretisation": "tustin"}, "loop.sample_time: expected more than 0, as discretisation"),
        ({"prewarp": 10.0}, "loop.sample_time: expected more than 0, as there is a prewarp"),
        ({"sample_time": 0.01, "prewarp": 10.0}, "prewarp: expected no such key, as discretis"),
        (
            {"sample_time": 0.01, "discretisation": "tustin", "prewarp": 400.0},
            "loop.prewarp: expected less than 314.159 rad/s .pi/T, the Nyquist frequency",
        ),
        ({"sample_time": 0.01, "discretisation": "euler"}, "one of 'exact' or 'tustin'"),
    ],
)
def test_a_loop_that_cannot_be_sampled_so_is_refused(loop, message):
    with pytest.raises(InputError, match=message):
        build(LOW, loop=loop)


TUSTIN = {"sample_time": 0.01, "discretisation": "tustin"}
WINDS = {"anti_windup": "back-calculation", "tracking_time": 0.1}
STATIC = {"measures": ["joint1"], "sample_time": 0.01, "D": [[1.0]]}


@pytest.mark.parametrize(
    ("loop", "message"),
    [
        (TUSTIN, "loop.discretisation: expected .exact., as state_space is discrete already "),
        (WINDS, "loop.anti_windup: expected .clamping., as it is not known which of its states "),
    ],
)
def test_matrices_of_samples_are_not_discretised_nor_stopped(loop, message):
    given = {"method": "state-space", "state_space": STATIC, "gains": None}
    with pytest.raises(InputError, match=message):
        build(loop=loop, **given)
    build(loop=loop)  # of other laws the whole comparison may be by one rule


def test_a_filter_of_no_joint_of_the_arm_is_refused():
    expected = r"filters\[2\].joint: expected a joint of arm \(joint1\), got \"joint2\""
    with pytest.raises(InputError, match=expected):
        check_design(single_link(), build(LOW, NOTCH | {"joint": "joint2"}))


def test_a_mode_is_followed_along_a_straight_path_only():
    way = {"kind": "cycloid", "from": [0.0, 0.0], "to": [1.0, 1.0], "duration": [1.0, 0.5]}
    gains = {"gains": {"Gp": 1.0, "Gv": 1.0}, "reference": way}
    with pytest.raises(InputError, match="expected a number, as the reference is no straight line"):
        build(NOTCH | {"frequency": "link1.y.1"}, **gains)
    build(NOTCH | {"frequency": "link1.y.1"}, **gains | {"reference": way | {"duration": 1.0}})
    still = {"kind": "cycloid", "from": [0.3], "to": [0.3], "duration": 1.0}
    build(NOTCH | {"frequency": "link1.y.1"}, reference=still)


def test_a_motion_in_memory_may_leave_the_pose_to_which_it_returns():
    class Motion:
        function, start, final, duration, rests = None, np.zeros(1), np.zeros(1), 1.0, True

    memory = {"kind": "motion", "from": [0.0], "to": [0.0], "motion": Motion()}
    with pytest.raises(InputError, match="expected a number, as the reference is no straight line"):
        build(NOTCH | {"frequency": "link1.y.1"}, reference=memory)
    build(NOTCH, reference=memory)


def test_numbers_of_a_filter_have_keys():
    design = build(LOW, NOTCH)
    assert is_of_design("filters[2].frequency")
    assert is_of_design("loop.delay")
    assert not is_of_design("link[2].EI")
    assert design_value(design, "filters[2].frequency") == 40.0
    assert design_value(design, "filters[3].frequency") is None
    changed = with_value(design, "filters[2].frequency", 50.0)
    assert [one.frequency for one in changed.filters] == [100.0, 50.0]
    assert with_value(design, "filters[1].frequency", 0.5, factor=True).filters[0].frequency == 50.0
    assert with_value(design, "filters[1].order", 1.0).filters[0].order == 1
    with pytest.raises(InputError, match=r"order: expected a whole number, got 1\.5"):
        with_value(design, "filters[1].order", 1.5)
    with pytest.raises(InputError, match=r"expected a table filters\[3\] .*, got nothing"):
        with_value(design, "filters[3].frequency", 1.0)
    with pytest.raises(InputError, match="frequency: expected a number above 0"):
        with_value(design, "filters[1].frequency", -1.0)


def test_filters_are_written_as_they_are_read(tmp_path):
    import tomllib

    design = build(LOW, NOTCH | {"joint": "joint1"})
    text = design_text(design, tmp_path)
    assert text.count("[[filters]]") == 2
    again = build_file(Design, tomllib.loads(text), "trial", None)
    assert again == design
