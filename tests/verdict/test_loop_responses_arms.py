"""Frequency responses of loops of arms: what is broken where, and one identity for all of them."""

import numpy as np
import pytest

import flexctl
from flexctl.control import design_controller
from flexctl.errors import InputError
from flexctl.loop.closed_loop import close_loop
from flexctl.loop.linear import linearise_loop
from flexctl.model.lookup import load_design
from flexctl.model.record import BasisChoice
from flexctl.model.settings import with_options
from flexctl.verdict.broken_loop import break_at_sensors, break_loop
from flexctl.verdict.loop_responses import frequency_response
from flexctl.verdict.margins import stability_margins
from tests.arms import rrp, single_link, sliding_arm, two_link
from tests.designs import designs_with_a_loop, make_design

pytestmark = pytest.mark.usefixtures("no_compiler")

ROTOR = {"rotor_inertia": 0.05, "stiffness": 60.0, "damping": 0.05}
EARTH = (0.0, -9.81, 0.0)
PD = {"gains": {"Gp": [120.0], "Gv": [26.0]}}
SEEN = {"measures": ["encoder", "tachometer", "strain_gauge"]}


def damped_two_link():
    return with_options(two_link(EARTH, EI=40.0), foreshortening=None, damping=0.03)


CASES = {
    "one joint": (single_link, {}, [0.0], [0.6]),
    "undamped": (lambda: single_link(damping=0.0), {}, [0.0], [0.6]),
    "elastic joint": (lambda: single_link(flexible_joint=ROTOR), PD, [0.0], [0.6]),
    "sampled, late": (
        single_link,
        {"loop": {"sample_time": 2e-3, "delay": 3e-3}, "method": "joint-pd"},
        [0.0],
        [0.6],
    ),
    "integral action": (
        damped_two_link,
        {"gains": {"Gp": [100.0], "Gv": [20.0], "Gi": [100.0]}},
        [-1.2, 0.3],
        [-0.5, 0.9],
    ),
    "gravity": (damped_two_link, {}, [-1.2, 0.3], [-0.5, 0.9]),
    "sliding": (lambda: sliding_arm(EARTH), {}, [0.0, 0.3], [0.5, 0.8]),
    "observer": (single_link, {"loop": SEEN} | PD, [0.0], [0.6]),
}


def closed(name, truth=2, **more):
    arm, tables, start, end = CASES[name]
    design = make_design(start, end, **tables, **more)
    basis = BasisChoice(order=2)
    controller = design_controller(arm(), design, basis)
    return close_loop(controller, arm(), BasisChoice(order=truth))


@pytest.fixture(params=CASES, scope="module")
def loop(request):
    return closed(request.param)


@pytest.fixture(scope="module")
def found(loop):
    return frequency_response(loop)


@pytest.mark.slow_but("undamped", "one joint", "elastic joint")
def test_both_ways_to_break_the_loop_have_one_determinant(loop, found):
    final = loop.controller.reference.final
    linear = linearise_loop(loop, final, loop.controller.final_second_loop_weight)
    w = found.w[:: len(found.w) // 12]
    inputs, outputs = (broken(linear).sensitivity(w) for broken in (break_loop, break_at_sensors))

    np.testing.assert_allclose(np.linalg.det(inputs), np.linalg.det(outputs), rtol=1e-6, atol=1e-12)


@pytest.mark.slow  # all of the catalogue
@pytest.mark.parametrize("name", list(designs_with_a_loop()))
def test_so_have_those_of_the_catalogue(name):
    design = load_design(name)
    controller = design_controller(design.model, design, interpreted=True)
    basis = BasisChoice(order=design.basis.order)
    linear = flexctl.linearise(close_loop(controller, design.model, basis))
    w = frequency_response(linear).w
    middle = w[len(w) // 4 :: len(w) // 10]  # at the slow end of a marginal loop L is round-off
    inputs, outputs = (cut(linear).sensitivity(middle) for cut in (break_loop, break_at_sensors))

    np.testing.assert_allclose(np.linalg.det(inputs), np.linalg.det(outputs), rtol=1e-5, atol=1e-9)


@pytest.mark.slow_but("one joint", "elastic joint", "sampled, late")
def test_margins_at_the_actuators_are_those_of_stability_margins(loop, found):
    if found.no_margins:
        pytest.skip("an undamped mode that the law leaves alone has no margins")
    margins = stability_margins(loop)

    own = [one.margins for one in found.at("actuator")]
    for name in ("gain_up_db", "gain_down_db", "phase_deg", "delay_seconds"):
        expected = getattr(margins, name)
        np.testing.assert_allclose([getattr(one, name) for one in own], expected, rtol=1e-12)
    assert found.peaks.Ms == margins.sensitivity_peak
    assert found.peaks.Mt == margins.complementary_peak
    peaks = [one.peaks.Ms for one in own]
    np.testing.assert_allclose(peaks, margins.joint_sensitivity_peak, rtol=1e-12)


def test_the_readings_are_those_of_the_law():
    names = {name: [one.name for one in frequency_response(closed(name)).at("sensor")] for name in
             ("sampled, late", "observer", "elastic joint")}  # fmt: skip
    elastic = ["link1.y.1", "link1.y.2"]

    assert names["sampled, late"] == ["joint1", "joint1.rate"]
    assert names["observer"] == ["joint1", *elastic, "joint1.rate"]  # gauges give no rates
    assert {"joint1", "joint1.rate"} <= set(names["elastic joint"])


def test_a_pose_is_where_linearise_puts_it():
    loop = closed("gravity")
    pose = {"joint1": 0.4, "joint2": 0.1}
    there = frequency_response(loop, [3.0], pose=pose)
    linear = frequency_response(flexctl.linearise(loop, pose), [3.0])

    np.testing.assert_array_equal(there.channels[0].L, linear.channels[0].L)
    assert there.pose["joint1"] == pytest.approx(0.4, abs=0.05)
    elsewhere = frequency_response(loop, [3.0]).channels[0].L
    assert abs(elsewhere - there.channels[0].L)[0] > 1e-3


def test_an_external_law_is_broken_at_the_signals_it_measures():
    arm = single_link()
    design = make_design([0.0], [0.6])
    own = flexctl.wrap_controller(
        [[20.0, 6.0]], arm, design.reference, measures=["joint1", "joint1_rate"], name="own"
    )
    own_loop = frequency_response(close_loop(own, arm, BasisChoice(order=2)))

    assert [one.name for one in own_loop.at("sensor")] == ["joint1", "joint1.rate"]


@pytest.mark.parametrize("method", ["feedforward", "torque"])
def test_an_open_loop_is_refused(method):
    arm = single_link()
    design = make_design([0.0], [0.6], method)
    loop = close_loop(design_controller(arm, design, BasisChoice(order=1)), arm)

    with pytest.raises(InputError, match=rf"with feedback.*open loop '{method}'"):
        frequency_response(loop)


def test_peaks_depend_on_no_unit_where_one_joint_is_judged():
    loop = close_loop(
        design_controller(rrp(damping=0.01), make_design([0.5, 0.6, 0.7], [0.7, 0.4, 0.8])),
        rrp(damping=0.01),
        BasisChoice(order=2),
    )
    margins = stability_margins(loop)

    assert margins.sensitivity_peak >= margins.joint_sensitivity_peak.max() * (1 - 1e-9)
