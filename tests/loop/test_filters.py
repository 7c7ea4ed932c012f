"""Loops with filters behind the law: responses, poles, rest, modes that are followed."""

import re

import control
import numpy as np
import pytest
import scipy.linalg

from flexctl.control import design_controller
from flexctl.control.mode_frequency import (
    Participation,
    participation,
    require_followed_mode,
)
from flexctl.errors import DesignError, InputError
from flexctl.loop.closed_loop import close_around, close_loop
from flexctl.loop.equilibrium import find_loop_equilibrium
from flexctl.loop.linear import linearise, linearise_loop
from flexctl.model.record import BasisChoice
from flexctl.simulation.simulation import simulate
from tests.arms import middle_pose, plant_of, spatial

pytestmark = pytest.mark.usefixtures("no_compiler")
EARTH = (0.0, -9.81, 0.0)
ROTOR = {"rotor_inertia": 0.05, "stiffness": 60.0, "damping": 0.05}
MODES = BasisChoice(kind="modes", order=2)
GAINS = {"Gp": [60.0], "Gv": [12.0]}
LOW = {"kind": "low-pass", "frequency": 150.0, "damping_ratio": 0.6}
NOTCH = {"kind": "notch", "frequency": 40.0, "zero_damping": 0.1, "pole_damping": 0.4}
LEAD = {"kind": "lead", "frequency": 25.0, "ratio": 4.0}
SERIES = [LOW, NOTCH | {"joint": "joint1"}, LEAD]


def arms(make, name):
    """Arm, start and end of a motion."""
    return {
        "single": lambda: (make["single"](), [0.0], [0.6]),
        "joint": lambda: (make["single"](flexible_joint=ROTOR), [0.0], [0.6]),
        "two-link": lambda: (make["two-link"](EARTH, EI=40.0), [-1.0, 0.4], [-0.6, 0.8]),
        "sliding": lambda: (make["sliding"](EARTH), [0.0, 0.3], [0.5, 0.7]),
        "rigid": lambda: (make["rigid"](EARTH), [-1.0, 0.4], [-0.6, 0.8]),
    }[name]()


def close(make, name, method="joint-pd", same=True, **tables):
    arm, start, end = arms(make, name)
    tables = {"gains": GAINS} | tables
    controller = design_controller(arm, make["design"](start, end, method, **tables))
    return close_around(controller, plant_of(arm)) if same else close_loop(controller, arm)


def textbook(one):
    """A filter as python-control has it."""
    w = one["frequency"]
    if one["kind"] == "low-pass":
        return control.tf([1], [1 / w**2, 2 * one["damping_ratio"] / w, 1])
    if one["kind"] == "lead":
        root = one["ratio"] ** 0.5
        return control.tf([root / w, 1], [1 / root / w, 1])
    zero, pole = one["zero_damping"], one["pole_damping"]
    return control.tf([1 / w**2, 2 * zero / w, 1], [1 / w**2, 2 * pole / w, 1])


def in_series(filters, m):
    """Filters of the joints, a function s -> (m, m)."""
    of_joint = [
        [textbook(one) for one in filters if one.get("joint", f"joint{j + 1}") == f"joint{j + 1}"]
        for j in range(m)
    ]
    systems = [control.series(*some) if len(some) > 1 else some[0] for some in of_joint]
    return lambda s: np.diag([system(s) for system in systems])


@pytest.mark.parametrize("name", ["single", "joint", "two-link", "sliding"])
def test_the_loop_responds_as_with_filters_of_python_control(make, name):
    loop = close(make, name, filters=SERIES)
    linear = linearise(loop)
    plain = linearise_loop(close(make, name), linear.rest.desired, 0.0)
    A, B, K = plain.plant.A_state, plain.plant.B_state, plain.feedback
    F, m = in_series(SERIES, loop.truth.m), loop.truth.m
    system = linear.to_control()
    joints = [system.output_labels.index(joint) for joint in loop.truth.joints]
    for w in (0.7, 9.0, 37.0, 140.0, 600.0):
        s = 1j * w
        P = np.linalg.solve(s * np.eye(len(A)) - A, B)
        expected = P @ np.linalg.inv(np.eye(m) - F(s) @ K @ P)  # by torques at the joints
        found = system(s)[joints][:, :m]
        np.testing.assert_allclose(found, expected[:m], rtol=1e-6, atol=1e-9)


def test_an_observer_is_told_the_torque_behind_the_filters(make):
    loop = {"measures": ["encoder", "tachometer", "strain_gauge"]}
    tables = {"method": "decoupling", "filters": SERIES, "gains": {"Gp": [120.0], "Gv": [26.0]}}
    observed, state = (close(make, "two-link", **tables, loop=more) for more in (loop, {}))
    linear = linearise(observed)
    own, whole = linear.poles, linearise(state).poles
    observer, plant = observed.controller.observer, linear.plant
    error = np.linalg.eigvals(plant.A_state - observer.gain @ observer.instruments.C)
    gap = np.abs(own[:, None] - np.concatenate([whole, error])[None])
    assert len(own) == len(whole) + len(error)
    assert (gap.min(1) / np.abs(own)).max() < 1e-5  # separation


@pytest.mark.parametrize("Gi", [None, [40.0]])
@pytest.mark.parametrize("name", ["two-link", "rigid", "sliding"])
def test_filters_change_nothing_where_the_loop_rests(make, name, Gi):
    gains = GAINS | ({"Gi": Gi} if Gi else {})
    filtered, plain = (
        find_loop_equilibrium(loop, loop.controller.reference.final, 0.0)
        for loop in (close(make, name, gains=gains, filters=f) for f in (SERIES, []))
    )
    np.testing.assert_allclose(filtered.q, plain.q, atol=1e-11)
    np.testing.assert_allclose(filtered.tau, plain.tau, rtol=1e-9)


@pytest.mark.parametrize("sample_time", [0.0, 0.002])
@pytest.mark.parametrize("Gi", [None, [40.0]])
def test_a_run_from_rest_under_gravity_stays_there(make, Gi, sample_time):
    # rigid links: what is fed forward holds the arm exactly
    gains, start = GAINS | ({"Gi": Gi} if Gi else {}), [-1.0, 0.4]
    loop, calm = {"sample_time": sample_time, "duration": 0.2}, [LOW | {"frequency": 400.0}]
    calm.append(NOTCH | {"frequency": 150.0})
    tables = {"gains": gains, "filters": calm, "loop": loop, "duration": 0.1}
    closed = make["close"](make["rigid"](EARTH), make["design"](start, start, "joint-pd", **tables))
    assert linearise(closed).poles.real.max() < 0
    run = simulate(closed, times=np.linspace(0, 0.2, 5))
    np.testing.assert_allclose(run.q, np.array(start)[:, None] * np.ones(5), atol=1e-9)


@pytest.mark.parametrize("method", ["exact", "tustin"])
def test_sampled_loops_tend_to_the_continuous_one(make, method):
    # periods for which the fastest mode turns by 0.6 to 0.07 rad: the hold's delay of T/2 is first
    # order; below, round-off of the logarithm would show
    continuous = linearise(close(make, "single", filters=SERIES))
    joints = continuous.rest.desired
    slow = continuous.poles[np.abs(continuous.poles) < 120]
    errors = []
    for period in (4e-4, 2e-4, 1e-4, 5e-5):
        loop = {"sample_time": period, "discretisation": method}
        own = linearise_loop(close(make, "single", filters=SERIES, loop=loop), joints, 0.0).poles
        errors.append(np.abs(own[:, None] - slow[None]).min(0).max())
    orders = np.log2(np.array(errors[:-1]) / errors[1:])
    np.testing.assert_allclose(orders, 1, atol=0.1)


def test_a_filter_that_follows_a_mode_has_its_frequency_at_each_pose(make):
    one = {"kind": "notch", "frequency": "link2.y.1", "joint": "joint2"}
    loop = close(make, "two-link", filters=[one])
    plant = loop.controller.plant
    for share in (0.0, 0.37, 1.0):
        pose = np.array([-1.0, 0.4]) + share * np.array([0.4, 0.4])
        q = plant.straight(pose)
        keep = [1, *range(2, plant.n)]  # the motor of joint 2 is free, that of joint 1 held
        M, K = (X[np.ix_(keep, keep)] for X in (plant.mass_matrix(q), plant.elastic_stiffness(q)))
        known = np.sqrt(np.abs(scipy.linalg.eigvalsh(K, M)))[1:]
        own = linearise_loop(loop, pose, 0.0).F
        frequency = np.sqrt(np.linalg.det(own))  # of the notch's poles
        assert np.abs(known / frequency - 1).min() < 1e-6
        assert frequency == pytest.approx(
            participation(plant, pose, 1).frequencies["link2.y.1"], rel=1e-6
        )


def test_a_fine_mesh_has_the_modes_of_a_coarse_one(make):
    # its first frequency is 3e-5 of its last: so slow, but no rigid motion
    arm = make["single"]()
    coarse, fine = (
        participation(plant_of(arm, "elements", order), np.zeros(1), None).frequencies
        for order in (4, 40)
    )
    for name in ("link1.y.1", "link1.y.2"):
        assert fine[name] == pytest.approx(coarse[name], rel=1e-3)


def test_all_motors_may_be_held(make):
    one = {"kind": "low-pass", "frequency": "link1.y.1", "held": "all"}
    arm, *_ = arms(make, "single")
    loop = close(make, "single", filters=[one])
    plant = plant_of(arm)
    q = plant.straight(np.array([0.6]))
    M, K = plant.mass_matrix(q)[1:, 1:], plant.elastic_stiffness(q)[1:, 1:]
    first = np.sqrt(scipy.linalg.eigvalsh(K, M)[0])
    assert np.sqrt(np.linalg.det(linearise(loop).F)) == pytest.approx(first, rel=1e-9)
    assert any("all motors held" in sentence for sentence in loop.controller.assumptions)


def test_the_spring_of_a_flexible_joint_is_a_mode_too(make):
    loop = close(make, "joint", filters=[{"kind": "notch", "frequency": "rotor1"}])
    plant = loop.controller.plant
    q = plant.straight(np.array([0.6]))
    known = np.sqrt(np.abs(scipy.linalg.eigvalsh(plant.elastic_stiffness(q), plant.mass_matrix(q))))
    frequency = np.sqrt(np.linalg.det(linearise(loop).F))
    assert np.abs(known[1:] / frequency - 1).min() < 1e-9


def test_a_followed_filter_is_discretised_at_each_pose(make):
    one = {"kind": "notch", "frequency": "link2.y.1", "joint": "joint2"}
    loop = {"sample_time": 1e-3, "discretisation": "tustin", "prewarp": 100.0}
    sampled = close(make, "two-link", filters=[one], loop=loop)
    plant, pose = sampled.controller.plant, np.array([-0.9, 0.5])
    frequency = participation(plant, pose, 1).frequencies["link2.y.1"]
    fixed = close(make, "two-link", filters=[one | {"frequency": frequency}], loop=loop)
    own, expected = (linearise_loop(x, pose, 0.0) for x in (sampled, fixed))
    np.testing.assert_allclose(own.F, expected.F, rtol=1e-6)
    np.testing.assert_allclose(own.integral_gain, expected.integral_gain, atol=1e-6)


def test_a_followed_mode_must_be_one_of_the_arm(make):
    expected = (
        r"filters\[1\].frequency: expected a number, or a mode of arm \(nearest: link2.y.\d\)"
    )
    with pytest.raises(InputError, match=expected):
        close(make, "two-link", filters=[{"kind": "notch", "frequency": "link2.y.9"}])


def test_a_followed_mode_above_the_nyquist_frequency_is_refused(make):
    one = {"kind": "notch", "frequency": "link2.y.1"}
    with pytest.raises(InputError, match=r"frequency: expected less than 31.4159 rad/s"):
        close(make, "two-link", filters=[one], loop={"sample_time": 0.1})


def drives(make):
    """Two links on flexible joints, and a motion in which modes of joint1's loop change places."""
    springs = (
        {"rotor_inertia": 0.5, "stiffness": 16000.0},
        {"rotor_inertia": 0.15, "stiffness": 4700.0},
    )
    arm = make["two-link"]()
    links = (
        {"length": 0.7, "mass_per_length": 0.5, "EI": {"y": 1500.0}}
        | {"tip_load": {"reference_pose": {"joint2": 0.0}}},
        {"length": 0.5, "mass_per_length": 0.2, "EI": {"y": 250.0}, "hub": {"mass": 1.4}}
        | {"tip_load": {}},
    )
    table = arm.table() | {"payload": {"mass": 0.8}}
    table["link"] = [
        {"joint": "revolute", "flexible_joint": spring} | link
        for link, spring in zip(links, springs, strict=True)
    ]
    return type(arm).model_validate(table | {"name": arm.name})


def notched(make, arm, name, start, end, **one):
    one = {"kind": "notch", "frequency": name, "joint": "joint1"} | one
    return design_controller(arm, make["design"](start, end, "joint-pd", filters=[one]), MODES)


@pytest.mark.parametrize(
    ("more", "which"),
    [
        ({}, r"with all drives but that of joint1 held \(rotor1, link1.y.1, .*\)"),
        ({"held": "all"}, r"with all drives held \(link1.y.1, .*\)"),
        ({"joint": None}, r"with all drives but that of joint1 held \(rotor1, .*\)"),
    ],
)
def test_a_drive_that_is_held_is_no_mode(make, more, which):
    expected = rf"frequency: expected a number, or a mode of arm {which}, got rotor2, which is held"
    with pytest.raises(InputError, match=expected):
        notched(make, drives(make), "rotor2", [-1.0, 0.9], [0.3, 0.4], **more)


def test_a_mode_that_changes_places_cannot_be_followed(make):
    arm = drives(make)
    start, end = np.array([-1.0, 0.9]), np.array([0.3, 0.4])
    with pytest.raises(DesignError, match="got rotor1, whose frequency jumps") as caught:
        notched(make, arm, "rotor1", start, end)
    said = re.search(
        r"from (\S+) to (\S+) rad/s at (\S+) of the way: it changes places with link2.y.1; "
        r"name link1.y.1 \((\S+) rad/s there\) or link2.y.1 \((\S+) rad/s there\), or take",
        str(caught.value),
    )
    first, then, share, *there = map(float, said.groups())
    assert there == [first, then]
    plant = plant_of(arm)
    for aside, frequency in ((-0.02, first), (0.02, then)):
        at = participation(plant, start + (share + aside) * (end - start), 0)
        assert at.frequencies["rotor1"] == pytest.approx(frequency, rel=0.02)
    for name in ("link1.y.1", "link2.y.1"):
        notched(make, arm, name, start, end)  # as advised


def test_a_frequency_between_too_few_poses_changes_no_places(make, monkeypatch):
    import flexctl.control.followed_frequency as followed

    def swinging(_plant, pose, _free):
        natural = np.array([50.0 + np.sin(200 * pose[0])])
        return Participation(names=("link1.y.1",), natural=natural, shares=np.ones((1, 1)))

    monkeypatch.setattr(followed, "participation", swinging)
    with pytest.raises(DesignError, match=r"whose frequency 17 poses .* 0\.\d+; take a number"):
        close(make, "single", filters=[{"kind": "notch", "frequency": "link1.y.1"}])


ONE_LINE = r"\Akey: expected a number, or a mode of arm .*\Z"


def arms_of_all_kinds(make):
    twisting = {"torsion": {"GJ": 8.0, "polar_inertia": 0.002}}
    return {
        "single": make["single"](),
        "joint": make["single"](flexible_joint=ROTOR),
        "drives": drives(make),
        "rigid": make["rigid"](),
        "sliding": make["sliding"](),
        "rrp": make["rrp"](),
        "spatial": spatial(),
        "twist": make["single"](**twisting),
    }


@pytest.mark.slow_but("rigid-elements", "rigid-modes", "single-modes")
@pytest.mark.parametrize("kind", ["modes", "elements"])
@pytest.mark.parametrize(
    "name", ["single", "joint", "drives", "rigid", "sliding", "rrp", "spatial", "twist"]
)
def test_every_mode_that_a_refusal_names_can_be_followed(make, name, kind):
    arm = arms_of_all_kinds(make)[name]
    plant = plant_of(arm, kind, 1)
    joints = middle_pose(arm)
    for free in (*range(plant.m), None):
        can = set(participation(plant, joints, free).frequencies)
        for mode in {*plant.coordinates, *plant.lines, *plant.rotors, *can, "torsion1", "link1"}:
            if mode in can:
                require_followed_mode(plant, mode, "key", free)
                continue
            with pytest.raises(
                InputError, match=r"\Akey: expected a number, or a mode of arm .*\Z"
            ):
                require_followed_mode(plant, mode, "key", free)


def test_filters_of_a_scheduled_loop_follow_the_same_path(make):
    second = {"weights": make["weights"], "schedule": 3}
    one = {"kind": "notch", "frequency": "link1.y.1"}
    plain, filtered = (
        close(make, "single", "decoupling", second_loop=second, filters=f) for f in ([], [one])
    )
    final = plain.controller.reference.final
    found, known = (linearise_loop(loop, final, 0.0) for loop in (filtered, plain))
    # behind the notch the law is the same: at rest, and far above the notch
    K = found.feedback
    np.testing.assert_allclose(K, known.feedback, atol=1e-6 * np.abs(K).max())


def test_filters_stand_behind_an_external_law_and_an_open_loop_too(make):
    arm, start, end = arms(make, "single")
    table = {"A": [[-5.0]], "B": [[1.0, 0.0]], "C": [[2.0]], "D": [[60.0, 12.0]]}
    table |= {"measures": ["joint1", "joint1_rate"]}
    design = make["design"](start, end, "state-space", gains=None, state_space=table, filters=[LOW])
    controller = design_controller(arm, design)
    assert (controller.n_state, controller.n_own, controller.n_integral) == (3, 3, 0)
    linear = linearise(close_around(controller, plant_of(arm)))
    np.testing.assert_allclose(linear.F[0], [-5, 0, 0])
    assert not linear.feedback.any()  # a low-pass filter is between
    opened = close(make, "single", "feedforward", gains=None, filters=[LOW])
    run = simulate(opened, times=[0.3, 0.6])
    assert np.abs(run.tau).max() > 0
    assert not linearise(opened).K[:, : 2 * opened.truth.n].any()


@pytest.mark.parametrize("sample_time", [0.0, 0.002])
def test_frequencies_of_filters_are_free_numbers(make, sample_time):
    loop = {"sample_time": sample_time}
    other = [LOW | {"frequency": 90.0}, NOTCH | {"pole_damping": 0.7}]
    begun = close(make, "two-link", filters=[LOW, NOTCH], loop=loop)
    changed = begun.at({"filters[1].frequency": 90.0, "filters[2].pole_damping": 0.7})
    expected = close(make, "two-link", filters=other, loop=loop)
    assert changed.controller.key == begun.controller.key  # nothing is derived again
    own, known = (linearise(one).poles for one in (changed, expected))
    np.testing.assert_allclose(np.sort_complex(own), np.sort_complex(known), rtol=1e-9)


def test_numbers_of_the_arm_move_a_followed_frequency(make):
    one = {"kind": "notch", "frequency": "link1.y.1"}
    begun = close(make, "single", same=False, filters=[one])
    stiffer = begun.at({"link1.EI.y": 73.6})  # four times: twice the frequencies
    frequency, twice = (np.sqrt(np.linalg.det(linearise(x).F)) for x in (begun, stiffer))
    assert twice / frequency == pytest.approx(2, rel=1e-6)
