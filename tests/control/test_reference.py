"""Reference motions: derivatives, rest at both ends, samples from a file."""

import subprocess
import sys

import casadi as ca
import numpy as np
import pytest

from flexctl.control import design_controller
from flexctl.control.reference import make_reference
from flexctl.errors import InputError
from flexctl.model import apply_settings
from flexctl.model.design import Design
from flexctl.model.record import BasisChoice

START, END, T = np.array([0.2, -1.0]), np.array([1.4, 0.5]), 0.8
KINDS = ["cycloid", "quintic"]


@pytest.fixture(scope="module")
def motion_of(make):
    return lambda kind: make_reference(make["design"](START, END, kind=kind, duration=T))


@pytest.fixture
def from_file(tmp_path, make):
    """from_file(t, joint): the motion of a csv file beside the design."""

    def read(t, joint):
        header = ",".join(["t", *(f"joint{j + 1}" for j in range(len(joint)))])
        table = np.vstack([t, joint]).T
        np.savetxt(
            tmp_path / "m.csv", table, fmt="%.17g", delimiter=",", header=header, comments=""
        )
        table = make["design"](START, END).table() | {"name": "x", "path": tmp_path / "x.toml"}
        table["reference"] = {"kind": "csv", "file": "m.csv"}
        return make_reference(Design.model_validate(table))

    return read


def assert_derivatives_agree(motion, t, h=1e-5):
    """Rates and accelerations equal central differences; truncation 1e-7, round-off 1e-10."""
    after, before, here = motion.sample(t + h), motion.sample(t - h), motion.sample(t)
    scale = [max(np.abs(x).max(), 1e-9) for x in here]
    np.testing.assert_allclose((after[0] - before[0]) / (2 * h), here[1], atol=1e-6 * scale[1])
    np.testing.assert_allclose((after[1] - before[1]) / (2 * h), here[2], atol=1e-6 * scale[2])


@pytest.mark.parametrize("kind", KINDS)
def test_rates_and_accelerations_are_derivatives(motion_of, kind):
    assert_derivatives_agree(motion_of(kind), np.linspace(0.01, T - 0.01, 37))


@pytest.mark.parametrize("kind", KINDS)
def test_a_motion_begins_and_ends_at_rest(motion_of, kind):
    position, rate, acceleration = motion_of(kind).sample(np.array([0.0, T]))
    np.testing.assert_allclose(position, np.array([START, END]).T, rtol=1e-14)
    np.testing.assert_allclose(rate, 0, atol=1e-12)
    np.testing.assert_allclose(acceleration, 0, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_a_motion_rests_before_and_after(motion_of, kind):
    position, rate, acceleration = motion_of(kind).sample(np.array([-3.0, T + 1e-9, 50.0]))
    np.testing.assert_allclose(position, np.array([START, END, END]).T, rtol=1e-14)
    assert not rate.any()
    assert not acceleration.any()


@pytest.mark.parametrize(
    ("kind", "peak_rate", "peak_acceleration"),
    # of s - sin(2 pi s)/(2 pi): 2 and 2 pi; of 10 s^3 - 15 s^4 + 6 s^5: 15/8 and 10/sqrt(3)
    [("cycloid", 2.0, 2 * np.pi), ("quintic", 15 / 8, 10 / np.sqrt(3))],
)
def test_peaks_are_those_of_the_profile(motion_of, kind, peak_rate, peak_acceleration):
    _, rate, acceleration = motion_of(kind).sample(np.linspace(0, T, 4001))
    assert rate[0].max() == pytest.approx(peak_rate * 1.2 / T, rel=1e-6)
    assert acceleration[0].max() == pytest.approx(peak_acceleration * 1.2 / T**2, rel=1e-6)


def test_a_setpoint_is_its_end_at_once(make):
    motion = make_reference(make["design"](START, END, kind="setpoint"))
    position, rate, acceleration = motion.sample(np.array([0.0, 1.0]))
    np.testing.assert_array_equal(position, np.array([END, END]).T)
    assert not rate.any()
    assert not acceleration.any()
    assert motion.duration == 0
    np.testing.assert_array_equal(motion.start, START)


@pytest.mark.parametrize("count", [4, 5, 6, 7, 20])
def test_a_spline_passes_through_its_samples(from_file, count):
    rng = np.random.default_rng(count)
    t = 0.4 + np.cumsum(rng.uniform(0.05, 0.15, count))
    joint = rng.normal(size=(3, count))
    motion = from_file(t, joint)
    np.testing.assert_allclose(motion.sample(t - t[0])[0], joint, atol=1e-10)
    assert motion.duration == pytest.approx(t[-1] - t[0])
    np.testing.assert_allclose(motion.start, joint[:, 0])
    np.testing.assert_allclose(motion.final, joint[:, -1])


FEW_SAMPLES = """
import sys
import numpy as np
from flexctl.model import Design
from flexctl.control import make_reference
design = {"name": "x", "path": sys.argv[1] + "/x.toml", "summary": "s", "source": "own"}
design |= {"model": "arm", "method": "joint-pd", "gains": {"Gp": [1.0], "Gv": [1.0]}}
design |= {"reference": {"kind": "csv", "file": "m.csv"}}
motion = make_reference(Design.model_validate(design))
for _ in range(20):
    position, rate, _ = motion.sample(np.linspace(0.0, 2.0, 9))
    np.testing.assert_allclose(position, [np.linspace(0.5, 1.5, 9)] * 3)
    np.testing.assert_allclose(rate[:, 1:-1], 0.5)
"""


@pytest.mark.slow_but("3")
@pytest.mark.parametrize("times", [[0.0, 2.0], [0.0, 0.5, 2.0]], ids=len)
def test_few_samples_on_a_line_are_joined_by_it(tmp_path, times):
    # in a process of its own: CasADi corrupts memory where it differentiates a low degree twice
    rows = [",".join(map(str, [t, *[0.5 + t / 2] * 3])) for t in times]
    (tmp_path / "m.csv").write_text("\n".join(["t,joint1,joint2,joint3", *rows]))
    command = [sys.executable, "-c", FEW_SAMPLES, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr[-500:]


def test_a_spline_has_consistent_derivatives(from_file):
    t = np.linspace(0.0, 1.0, 25)
    motion = from_file(t, np.array([np.sin(3 * t), t**3]))
    assert_derivatives_agree(motion, np.linspace(0.05, 0.95, 31))


def test_a_polynomial_of_degree_five_is_met_everywhere(from_file):
    t = np.linspace(0.0, 1.0, 12)
    shape = np.polynomial.Polynomial([0, 0, 0, 10, -15, 6])
    motion, fine = from_file(t, shape(t)[None]), np.linspace(0, 1, 77)
    position, rate, acceleration = motion.sample(fine)
    np.testing.assert_allclose(position[0], shape(fine), atol=1e-9)
    np.testing.assert_allclose(rate[0], shape.deriv()(fine), atol=1e-7)
    np.testing.assert_allclose(acceleration[0], shape.deriv(2)(fine), atol=1e-5)


def test_a_spline_rests_before_and_after(from_file):
    t = np.linspace(2.0, 3.0, 9)
    position, rate, acceleration = from_file(t, np.sin(t)[None]).sample(np.array([-0.1, 1.1, 9.0]))
    np.testing.assert_allclose(position[0], np.sin([2.0, 3.0, 3.0]), atol=1e-12)
    assert not rate.any()
    assert not acceleration.any()


@pytest.mark.parametrize("kind", KINDS)
def test_each_joint_moves_in_its_own_time_and_then_rests(make, kind):
    motion = make_reference(make["design"](START, END, kind=kind, duration=[0.8, 0.3]))
    t = np.linspace(-0.1, 1.0, 45)
    alone = [
        make_reference(make["design"](START, END, kind=kind, duration=T)).sample(t)
        for T in (0.8, 0.3)
    ]
    for part, first, second in zip(motion.sample(t), *alone, strict=True):
        np.testing.assert_allclose(part, [first[0], second[1]], rtol=1e-14)
    assert motion.duration == 0.8
    assert motion.breaks == (0.3, 0.8)
    assert motion.rests


def test_the_cycloid_of_mohan_and_saha_is_theirs(make):
    # (44): theta_i = k_i [t - (T_i/pi) sin(pi t/T_i)]
    k, half = np.array([0.075, 0.05, 0.1]), np.array([10.0, 5.0, 5.0])
    motion = make_reference(make["design"](np.zeros(3), 2 * k * half, duration=list(2 * half)))
    t = np.linspace(0, 10, 51)
    position, rate, _ = motion.sample(t)
    x = np.pi * t / half[:, None]
    np.testing.assert_allclose(position.T, (k * (t - half[:, None] * np.sin(x) / np.pi).T))
    np.testing.assert_allclose(rate[:, -1], [0.15, 0, 0], atol=1e-15)


@pytest.fixture(scope="module")
def spin_up(make):
    design = make["design"](START, [6.0, -2.0], kind="spin-up", duration=[15.0, 4.0])
    return make_reference(design)


def test_a_spin_up_is_that_of_kane(spin_up):
    W, T, t = 6.0, 15.0, np.linspace(0, 15, 61)
    theta = W / T * (t**2 / 2 + (T / (2 * np.pi)) ** 2 * (np.cos(2 * np.pi * t / T) - 1))
    position, rate, acceleration = spin_up.sample(t)
    np.testing.assert_allclose(position[0], START[0] + theta, rtol=1e-13)
    np.testing.assert_allclose(rate[0], W / T * (t - T / (2 * np.pi) * np.sin(2 * np.pi * t / T)))
    np.testing.assert_allclose(acceleration[0], W / T * (1 - np.cos(2 * np.pi * t / T)), atol=1e-14)


def test_a_spin_up_has_consistent_derivatives(spin_up):
    assert_derivatives_agree(spin_up, np.linspace(0.1, 19.9, 34), h=1e-4)


def test_a_spin_up_turns_on_steadily_and_never_rests(spin_up):
    t = np.array([-1.0, 0.0, 15.0, 40.0])
    position, rate, acceleration = spin_up.sample(t)
    np.testing.assert_allclose(position[0] - START[0], [0, 0, 45, 45 + 6 * 25], atol=1e-12)
    np.testing.assert_allclose(position[1] - START[1], [0, 0, -2 * 13, -2 * 38], atol=1e-12)
    np.testing.assert_allclose(rate, [[0, 0, 6, 6], [0, 0, -2, -2]], atol=1e-14)
    np.testing.assert_allclose(acceleration, 0, atol=1e-14)
    assert not spin_up.rests
    assert spin_up.duration == 15
    np.testing.assert_allclose(spin_up.final - START, [45, -26])


def test_a_spin_up_to_nothing_rests(make):
    assert make_reference(make["design"](START, [0.0, 0.0], kind="spin-up")).rests


@pytest.fixture(scope="module")
def bang_bang(make):
    return make_reference(make["design"](START, END, kind="bang-bang", duration=[0.8, 0.3]))


def test_a_bang_bang_has_one_acceleration_turned_round_at_half_its_time(bang_bang):
    t, first = np.array([0.0, 0.2, 0.399, 0.4, 0.7, 0.8, 9.0]), 4 * 1.2 / 0.8**2
    _, _, acceleration = bang_bang.sample(t)
    np.testing.assert_allclose(acceleration[0], first * np.array([1, 1, 1, -1, -1, 0, 0]))
    second = 4 * 1.5 / 0.3**2
    np.testing.assert_allclose(acceleration[1], second * np.array([1, -1, 0, 0, 0, 0, 0]))


def test_a_bang_bang_moves_by_parabolas_from_rest_to_rest(bang_bang):
    t = np.array([-1.0, 0.0, 0.2, 0.4, 0.6, 0.8, 5.0])
    position, rate, _ = bang_bang.sample(t)
    np.testing.assert_allclose(position[0] - 0.2, 1.2 * np.array([0, 0, 1, 4, 7, 8, 8]) / 8)
    np.testing.assert_allclose(rate[0], 1.2 / 0.8 * np.array([0, 0, 1, 2, 1, 0, 0]), atol=1e-15)


def test_a_bang_bang_has_consistent_derivatives(bang_bang):
    between = np.array([0.05, 0.1, 0.2, 0.25, 0.35, 0.5, 0.7])  # no jump within a difference
    assert_derivatives_agree(bang_bang, between)


def test_a_bang_bang_jumps_where_it_says(bang_bang):
    assert bang_bang.breaks == (0.15, 0.3, 0.4, 0.8)
    assert bang_bang.rests
    assert not bang_bang.torque


@pytest.mark.parametrize(("t", "count"), [(0.0, 0), (0.15, 1), (0.39, 2), (0.8, 4), (2.0, 4)])
def test_jumps_passed_pick_the_value_between_them(bang_bang, t, count):
    third = ca.MX.sym("third", 2)
    picked = ca.Function(
        "picked", [third], [bang_bang.after(ca.MX(count), [third] * 3, ca.MX(bang_bang.steps))[2]]
    )

    assert bang_bang.passed(t) == count
    np.testing.assert_array_equal(picked([7, 7]), bang_bang.sample(np.array([t]))[2])


def test_torques_are_the_third_signal_and_the_joints_stay(make):
    design = make["design"](START, [0.2, -0.3], "torque", duration=1.0)
    motion = make_reference(design)
    position, rate, torque = motion.sample(np.array([-0.1, 0.0, 0.49, 0.5, 0.99, 1.0, 3.0]))

    signs = np.array([0, 1, 1, -1, -1, 0, 0])
    np.testing.assert_array_equal(torque, np.outer([0.2, -0.3], signs))
    np.testing.assert_array_equal(position, np.tile(START[:, None], 7))
    assert not rate.any()
    assert motion.torque
    assert not motion.rests


@pytest.mark.parametrize("kind", [*KINDS, "setpoint"])
def test_motions_to_an_end_rest(make, kind):
    assert make_reference(make["design"](START, END, kind=kind)).rests


QUICK = 0.015  # of a joint's motion [s] beside one of 10 s


@pytest.mark.parametrize("shaper", [{}, {"shaper": {"kind": "ZV", "frequency": 3.0}}])
@pytest.mark.parametrize(
    ("kind", "factor"), [("quintic", 15 / 8), ("cycloid", 2), ("bang-bang", 2)]
)
def test_the_rate_of_a_joint_that_moves_briefly_is_limited(make, kind, factor, shaper):
    design = make["design"](START, END, kind=kind, duration=[10.0, QUICK])
    design = design.table() | {"name": "quick"}
    design["reference"] |= shaper
    share = 0.5 if shaper else 1.0  # of the first of two equal impulses, far apart
    fastest = share * factor * (END - START)[1] / QUICK

    require_rate(make, design, 1.001 * fastest)
    with pytest.raises(InputError, match=r"expected a motion of at most .* at joint2"):
        require_rate(make, design, 0.999 * fastest)


@pytest.mark.parametrize("shaper", [{}, {"shaper": {"kind": "ZV", "frequency": 3.0}}])
def test_the_rate_of_a_record_is_limited_between_its_samples(make, tmp_path, shaper):
    t = np.linspace(0.0, 10.0, 4001)
    joint = np.tile(START[:, None], len(t))
    joint[1, 1234:] += 0.01  # within one sample
    table = np.vstack([t, joint]).T
    np.savetxt(tmp_path / "m.csv", table, delimiter=",", header="t,joint1,joint2", comments="")
    design = make["design"](START, END).table() | {"name": "x", "path": tmp_path / "x.toml"}
    design["reference"] = {"kind": "csv", "file": "m.csv"}
    rate = make_reference(Design.model_validate(design)).sample(np.linspace(3.0, 3.2, 20001))[1]
    fastest = (0.5 if shaper else 1.0) * np.abs(rate).max()
    design["reference"] |= shaper

    require_rate(make, design, 1.01 * fastest)
    with pytest.raises(InputError, match=r"expected a motion of at most .* at joint2"):
        require_rate(make, design, 0.99 * fastest)


def require_rate(make, design, rate):
    """Design for an arm of rigid links with this rate limit of joint 2."""
    setting = f"link2.limits.rate={float(rate)!r}"
    arm = apply_settings(make["rigid"]((0.0, 0.0, 0.0)), [setting])
    basis = BasisChoice(order=1)
    return design_controller(arm, Design.model_validate(design), basis, interpreted=True)
