"""Errors of runs between their samples: closed forms of vibrations, and runs sampled finely."""

from itertools import pairwise

import numpy as np
import pytest

import flexctl
from flexctl import load_design
from flexctl.model import Design, build_file
from flexctl.simulation import simulate
from flexctl.verdict.between_samples import ErrorNorm, joint_errors, rest_errors, tip_errors
from flexctl.verdict.performance import judge_effort, judge_residual, judge_tracking, run_times

FAST, SLOW, DECAY = 20.0, 7.0, 1.5


def vibration(t):
    """A decaying vibration in three axes, and its rate."""
    size = np.array([0.02, -0.01, 0.005])[:, None]
    w = np.array([FAST, FAST, SLOW])[:, None]
    fade, phase = np.exp(-DECAY * t), w * t + np.array([0.3, 1.1, 2.0])[:, None]
    value = size * fade * np.sin(phase)
    return value, size * fade * w * np.cos(phase) - DECAY * value


def sampled(step, first=0.0):
    t = np.append(0.0, np.arange(first * step or step, 3.0 + step / 2, step))
    return ErrorNorm(t, *vibration(t))


def fine():
    t = np.linspace(0.0, 3.0, 3_000_001)
    return t, np.linalg.norm(vibration(t)[0], axis=0)


def test_peaks_between_samples_are_exact_to_fourth_order():
    exact = fine()[1].max()
    # the largest error of 16 places of the peak between two samples
    errors = [
        max(abs(sampled(h, part / 16).largest / exact - 1) for part in range(1, 17))
        for h in (0.02, 0.01, 0.005)
    ]

    assert errors[0] < 2 * (FAST * 0.02) ** 4 / 384
    assert all(12 < a / b < 20 for a, b in pairwise(errors))
    assert np.max(sampled(0.02).at_samples) < (1 - 1e-4) * exact  # which samples alone are not


@pytest.mark.parametrize("band", [1e-3, 3e-3, 8e-3])
def test_the_band_is_entered_where_a_fine_run_enters_it(band):
    t, norm = fine()
    exact = t[np.flatnonzero(norm > band)[-1]]

    assert sampled(0.01).enters(band) == pytest.approx(exact, abs=1e-5)


def test_a_peak_between_samples_that_leaves_the_band_counts():
    t, norm = fine()
    early = norm[t < 0.1].max()
    band = early * (1 - 1.5e-4)  # samples 0.02 s apart all lie below it
    one = sampled(0.02)

    assert one.at_samples.max() < band
    assert one.largest > band
    assert one.enters(band) == pytest.approx(t[np.flatnonzero(norm > band)[-1]], abs=2e-3)


def test_a_band_is_entered_first_where_it_is_never_left_and_last_where_it_never_is_entered():
    assert sampled(0.01).enters(1.0) == 0.0
    assert sampled(0.01).enters(0.0) == pytest.approx(3.0)


@pytest.fixture(scope="module", params=["hub-pd", "hub-pid"])
def loop(request):
    return flexctl.close_loop(
        flexctl.design_controller("single-link-hub", request.param), "single-link-hub", modes=2
    )


def test_tip_rates_are_those_of_the_jacobian(loop):
    run, truth = simulate(loop, times=np.linspace(0, loop.duration, 21)), loop.truth
    for k in range(len(run.t)):
        rate = truth.tip_jacobian(run.q[:, k]) @ run.v[:, k]
        q_d = truth.straight(run.desired[:, k])
        v_d = np.concatenate([run.desired_rate[:, k], np.zeros(truth.n - 1)])
        np.testing.assert_allclose(run.tip_rate[:, k], rate, atol=1e-8)
        np.testing.assert_allclose(
            run.desired_tip_rate[:, k], truth.tip_jacobian(q_d) @ v_d, atol=1e-8
        )


def test_a_verdict_is_that_of_a_run_with_twenty_times_its_samples(loop):
    times, end = run_times(loop), loop.controller.reference.duration
    many = np.union1d(np.linspace(0, loop.duration, 20 * (len(times) - 1) + 1), times)
    own, finer = (simulate(loop, times=t, integrator="explicit") for t in (times, many))
    after, moving = finer.t >= end, finer.t <= end

    residual, tracking = judge_residual(own, loop.controller), judge_tracking(own, loop.controller)
    assert residual.tip_error_max == pytest.approx(finer.rest_error[after].max(), rel=1e-6)
    assert tracking.tip_error_max == pytest.approx(finer.tip_error[moving].max(), rel=1e-6)
    assert tracking.joint_error_max == pytest.approx(
        np.abs(finer.joint_error[:, moving]).max(axis=1), rel=1e-6
    )
    coarse = simulate(loop, times=many[::80])
    for norm, signal in ((rest_errors, finer.rest_error), (tip_errors, finer.tip_error)):
        assert norm(coarse).largest == pytest.approx(signal.max(), rel=1e-4)
    assert joint_errors(coarse)[0].largest == pytest.approx(
        np.abs(finer.joint_error).max(), rel=1e-4
    )


@pytest.mark.parametrize("sampled_by", [{}, {"sample_time": 0.002, "delay": 0.001}])
def test_a_shaped_set_point_is_judged_against_all_its_stairs(sampled_by):
    shaper = {"kind": "ZVD", "frequency": "loop1"}
    reference = {"kind": "setpoint", "from": [0.0], "to": [0.2], "shaper": shaper}
    table = {key: x for key, x in load_design("hub-pd").table().items() if key != "expect"}
    table |= {"gains": {"Gp": 600.0, "Gv": 40.0}, "reference": reference}
    table["loop"] = {"duration": 3.9, "settle_within": 1e-3, **sampled_by}
    design = build_file(Design, table, "stairs", None)
    loop = flexctl.close_loop(
        flexctl.design_controller("single-link-hub", design), "single-link-hub", modes=2
    )
    run, motion = simulate(loop, times=run_times(loop)), loop.controller.reference
    stairs = motion.steps[0]
    wanted = stairs[np.searchsorted(motion.breaks, run.t - 1e-11)]

    assert len(set(stairs)) == 3
    np.testing.assert_array_equal(run.desired[0], wanted)
    tip = np.array([np.cos(wanted), np.sin(wanted), 0 * wanted])
    moving = run.t <= motion.duration + 1e-11
    off = np.linalg.norm(run.tip - tip, axis=0)[moving]
    found = judge_tracking(run, loop.controller)
    assert found.tip_error_max == pytest.approx(off.max(), rel=1e-6)
    # the largest is just after a stair, where a sample of its own shows it
    after_stairs = np.array(motion.breaks) + 1e-9 * loop.duration
    assert np.abs(run.t[off.argmax()] - after_stairs).min() < 1e-11


@pytest.mark.parametrize("duration", [4.0, 3.99998])
def test_the_end_of_the_motion_is_judged_wherever_samples_fall(duration):
    # the residual of hub-pd is largest where its motion ends, at 1 s
    table = {key: x for key, x in load_design("hub-pd").table().items() if key != "expect"}
    table["loop"] = {"duration": duration}
    design = build_file(Design, table, "pd", None)
    loop = flexctl.close_loop(
        flexctl.design_controller("single-link-hub", design), "single-link-hub", elements=4
    )
    run = simulate(loop, times=run_times(loop))

    assert judge_residual(run, loop.controller).tip_error_max == pytest.approx(0.2412941, rel=1e-5)


def test_torques_jump_where_a_second_loop_takes_over():
    """A sample just before and just after: rms as that of a run with 20 times the samples."""
    controller = flexctl.design_controller("planar-two-link", "two-link-decoupling")
    loop = flexctl.close_loop(controller, "planar-two-link", elements=2)
    t, end = run_times(loop), controller.reference.duration
    run = simulate(loop, times=t)
    before = int(np.flatnonzero(t == end)[0])
    fine = simulate(loop, times=np.union1d(t, np.linspace(0.0, loop.duration, 20_001)))

    assert t[before + 1] - end < 2e-9 * loop.duration
    jump, then = np.abs(np.diff(run.tau[0, before : before + 3]))
    assert jump > 4 * then
    np.testing.assert_allclose(judge_effort(run).rms, judge_effort(fine).rms, rtol=1e-5)
