"""The tables of composite control: what they mean when absent, and what is refused."""

import pytest

from flexctl.errors import InputError
from flexctl.model.design import Design
from flexctl.model.refusals import build_file
from flexctl.model.settings import with_value

WEIGHTS = {"strain_energy": 1.0, "effort": 0.1}
GIVEN = {"Kp": [[1.0, 2.0]] * 2, "Kv": [[1.0, 2.0]] * 2, "columns": ["rotor1", "rotor2"]}
CYCLOID = {"kind": "cycloid", "from": [0.0, 0.0], "to": [1.0, 0.5], "duration": 2.0}


def build(**tables):
    table = {"summary": "made for a test", "source": "own", "model": "arm", "method": "composite"}
    table |= {"reference": CYCLOID, "gains": {"Gp": 4.0, "Gv": 4.0}} | tables
    return build_file(Design, table, "trial", None)


def test_without_tables_it_is_slow_control_on_what_the_torques_act_on():
    design = build()
    assert design.fast_loop is None
    assert design.slow_angle == "rotor"


def test_the_quasi_steady_part_is_subtracted_unless_refused():
    assert build(fast_loop={"weights": WEIGHTS}).fast_loop.quasi_steady


CASES = [
    ({"slow_loop": {"angle": "joint"}}, "slow_loop.angle: expected one of 'link' or 'rotor', got"),
    (
        {"gains": {"Gp": 1.0, "Gv": 1.0, "Gi": 1.0}},
        "gains.Gi: expected no such key, as method is c",
    ),
    ({"fast_loop": {}}, "fast_loop.Kp: expected a value, as there are no weights, got nothing"),
    (
        {"fast_loop": {"weights": {"effort": 0.1}}},
        "fast_loop.weights.strain_energy: expected this or kinetic_energy above 0, got 0",
    ),
    (
        {"fast_loop": {"weights": {"strain_energy": 1.0}}},
        "fast_loop.weights.effort: expected a value, got nothing",
    ),
    (
        {"fast_loop": GIVEN | {"weights": WEIGHTS}},
        "fast_loop.Kp: expected no such key beside weigh",
    ),
    (
        {"fast_loop": {"weights": WEIGHTS, "scaled": True}},
        "fast_loop.scaled: expected no such key beside weights, got true",
    ),
    (
        {"fast_loop": {"weights": WEIGHTS, "modes": "tip"}},
        'fast_loop.modes: expected no such key beside weights, got "tip"',
    ),
    (
        {"fast_loop": {"weights": WEIGHTS, "schedule": 1}},
        "fast_loop.schedule: expected 0, or at least 2 poses, got 1",
    ),
    (
        {"fast_loop": GIVEN | {"columns": ["rotor1", "rotor1"]}},
        'fast_loop.columns: expected every fast position once, got ["rotor1", "rotor1"]',
    ),
    (
        {"fast_loop": GIVEN | {"Kv": [[1.0, 2.0], [3.0]]}},
        "fast_loop.Kv: expected 2 numbers in every row, one per entry of columns, got rows of 2, 1",
    ),
    (
        {"fast_loop": GIVEN | {"schedule": 3}},
        "fast_loop.schedule: expected no such key, as gains are given and not designed, got 3",
    ),
    (
        {"fast_loop": GIVEN | {"modes": "unit"}},
        "fast_loop.modes: expected one of 'tip' or 'mass', ",
    ),
    (
        {"method": "joint-pd", "slow_loop": {"angle": "link"}},
        "slow_loop: expected no such table, as method is not composite, got",
    ),
    (
        {"method": "joint-pd", "fast_loop": GIVEN},
        "fast_loop: expected no such table, as method is not composite, got",
    ),
]
NOT_STRAIGHT = [
    {"kind": "csv", "file": "x.csv"},
    {"kind": "setpoint", "from": [0.0, 0.0], "to": [1.0, 0.5]},
    {"kind": "spin-up", "from": [0.0, 0.0], "rate": [1.0, 0.5], "duration": 1.0},
    CYCLOID | {"duration": [1.0, 2.0]},
    CYCLOID | {"to": [0.0, 0.0]},
]


@pytest.mark.parametrize(("tables", "message"), CASES)
def test_a_faulty_table_is_refused_in_one_line(tables, message):
    with pytest.raises(InputError) as caught:
        build(**tables)
    assert str(caught.value).startswith(f"trial: {message}")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("reference", NOT_STRAIGHT)
def test_gains_are_scheduled_along_a_straight_way_only(reference):
    with pytest.raises(InputError) as caught:
        build(reference=reference, fast_loop={"weights": WEIGHTS, "schedule": 5})
    expected = "no such key, as the reference is no straight line in joint space, "
    expected += "or does not move along one"
    assert str(caught.value) == f"trial: fast_loop.schedule: expected {expected}, got 5"


@pytest.mark.parametrize("durations", [2.0, [2.0, 2.0]])
def test_a_straight_way_may_be_scheduled(durations):
    fast = {"weights": WEIGHTS, "schedule": 5}
    assert (
        build(reference=CYCLOID | {"duration": durations}, fast_loop=fast).fast_loop.schedule == 5
    )


def test_a_number_of_poses_is_varied_as_sweeps_write_it():
    weights = {"joint_error": 1.0, "effort": 1.0}
    loops = {
        "fast_loop": {"weights": WEIGHTS, "schedule": 5},
        "second_loop": {"weights": weights, "schedule": 5},
    }
    varied = with_value(build(**loops), "fast_loop.schedule", 3.0)
    assert with_value(varied, "second_loop.schedule", 3.0).second_loop.schedule == 3
    assert varied.fast_loop.schedule == 3


def test_a_joint_that_stays_does_not_bend_the_way():
    reference = CYCLOID | {"to": [1.0, 0.0], "duration": [2.0, 3.0]}
    assert build(reference=reference).reference.straight
