"""Frequency responses of loops broken at actuators and sensors, against their definitions."""

import control
import numpy as np
import pytest
import slycot

from flexctl.errors import InputError
from flexctl.loop.linear_loop import one_sample
from flexctl.verdict.broken_loop import break_at_sensors, break_loop
from flexctl.verdict.loop_responses import frequency_response
from flexctl.verdict.sensitivity_peaks import sensitivity_peaks
from tests.loops import hand_made

T = 0.05
M, D, K = np.array([[2.0, 0.3], [0.3, 1.0]]), np.diag([0.1, 0.2]), np.diag([0.0, 5.0])
GAINS = -np.array([[6.0, 1.0], [0.5, 9.0]]), -np.diag([4.0, 2.5]), -np.diag([1.5, 2.0])
W = np.array([0.4, 2.7, 11.0, 23.0])
KINDS = {"continuous": None, "held": 0.0, "late": 0.02, "later": 1.3 * T}


@pytest.fixture(params=KINDS.values(), ids=KINDS)
def loop(request):
    """Two joints that move each other, with integrals; continuous, or sampled and late."""
    sampled = {} if request.param is None else {"sample_time": T, "delay": request.param}
    return hand_made(M, D, K, *GAINS, **sampled)


def opened_at_reading(loop, j):
    """A, b, c of the way from reading j as the law takes it to the reading as it is measured."""
    read = loop.signals
    others = np.delete(np.arange(len(read.names)), j)
    by_tau, by_z = read.by_tau[:, others] @ read.C[others], read.by_z[:, others] @ read.C[others]
    A, B, step = loop.A.copy(), loop.B, 1.0
    n = 2 * len(loop.plant.M)
    if loop.sample_time is None:
        A[n:, :n] = by_z
    else:
        step = loop.sample_time
        A, B = one_sample(loop, step, loop.delay)
        A[n : n + len(by_z), :n] = step * by_z
    closed = np.zeros((len(loop.K), len(A)))
    closed[:, :n], closed[:, n : n + len(by_z)] = by_tau, loop.integral_gain
    b = B @ read.by_tau[:, j]
    b[n : n + len(by_z)] += step * read.by_z[:, j]
    c = np.zeros(len(A))
    c[:n] = read.C[j]
    return A + B @ closed, b, c


def axis(loop, w):
    """Points of the s- or the z-plane at frequencies w."""
    return np.exp(1j * w * T) if loop.sampled else 1j * w


def systems(loop):
    """Loop gains of all channels, by name, as systems of python-control."""
    cut = break_loop(loop)
    found = {}
    for j, name in enumerate(loop.plant.actuators):
        b, c = cut.B[:, [j]], cut.C[[j]]
        found[f"tau.{name}"] = control.ss(cut.A - b @ c, b, -c, 0, loop.sample_time or 0)
    for j, name in enumerate(loop.signals.names):
        A, b, c = opened_at_reading(loop, j)
        found[name] = control.ss(A, b[:, None], -c[None], 0, loop.sample_time or 0)
    return found


def test_loop_gains_are_those_of_the_broken_loop(loop):
    found = frequency_response(loop, W)

    expected = systems(loop)
    assert [one.name for one in found.channels] == list(expected)
    for one in found.channels:
        direct = expected[one.name](axis(loop, W))
        np.testing.assert_allclose(one.L, direct, rtol=1e-9)
        np.testing.assert_allclose(one.T, direct / (1 + direct), rtol=1e-9)
        np.testing.assert_allclose(one.S, 1 / (1 + direct), rtol=1e-8)


def test_both_ways_to_break_all_channels_have_one_determinant(loop):
    # det(I + C P) = det(I + P C)
    inputs, outputs = break_loop(loop).sensitivity(W), break_at_sensors(loop).sensitivity(W)

    np.testing.assert_allclose(np.linalg.det(inputs), np.linalg.det(outputs), rtol=1e-8)


@pytest.mark.slow
def test_margins_of_channels_are_those_of_python_control(loop):
    found = frequency_response(loop)
    end = np.pi / T * (1 - 1e-9) if loop.sampled else 1e3
    w = np.geomspace(0.02, end, 5000)  # its polynomials lose all digits of sampled loops

    for one in found.channels:
        own, system = one.margins, control.frd(systems(loop)[one.name], w, smooth=True)
        gains, phases, _, _, at, _ = control.stability_margins(system, returnall=True)
        phase = np.abs(phases).min(initial=np.inf)  # leads count as lags do
        assert own.phase_deg == pytest.approx(phase, rel=1e-6)
        largest = np.abs(1 / (1 + systems(loop)[one.name](axis(loop, w)))).max()
        assert own.peaks.Ms == pytest.approx(largest, rel=1e-5)
        np.testing.assert_allclose(own.crossovers, np.sort(at), rtol=1e-6)
        end = systems(loop)[one.name](-1.0).real if loop.sampled else 0.0  # real, and not searched
        gains = [*gains, -1 / end] if end < 0 else gains
        above = 20 * np.log10(min((g for g in gains if g > 1), default=np.inf))
        assert min(own.gain_up_db, 60) == pytest.approx(min(above, 60), rel=1e-6)


@pytest.mark.slow
def test_disks_at_the_sensors_are_those_of_python_control():
    loop = hand_made(M, D, K, *GAINS)
    w = np.geomspace(0.01, 100, 20000)
    for one in frequency_response(loop).at("sensor"):
        disk = control.disk_margins(systems(loop)[one.name], w)[0]
        assert one.margins.disk == pytest.approx(disk, rel=1e-5)


def test_peaks_are_norms_of_slycot(loop):
    cut = break_loop(loop)
    n, m = cut.B.shape
    dico = "D" if loop.sampled else "C"
    found = sensitivity_peaks(cut)

    for value, D_matrix in ((found.Ms, np.eye(m)), (found.Mt, np.zeros((m, m)))):
        args = n, m, m, cut.A.copy(), np.eye(n), cut.B.copy(), cut.C.copy(), D_matrix
        norm, _ = slycot.ab13dd(dico, "I", "N", "D", *args, tol=1e-10)
        assert value == pytest.approx(norm, rel=2e-6)


@pytest.mark.slow_but("continuous", "late")
def test_a_peak_is_at_its_frequency(loop):
    found = frequency_response(loop)
    at = frequency_response(loop, [found.peaks.Ms_frequency])

    assert at.sensitivity[0, 0] == pytest.approx(found.peaks.Ms, rel=1e-9)
    assert found.sensitivity[:, 0].max() == pytest.approx(found.peaks.Ms, rel=1e-6)


def test_integral_action_makes_the_complementary_sensitivity_one_at_rest():
    found = frequency_response(hand_made(M, D, K, *GAINS), [1e-7])

    np.testing.assert_allclose(found.complementary[0], 1.0, rtol=1e-6)
    assert found.sensitivity[0, 0] < 1e-6


def test_a_single_mass_under_pd_has_its_closed_forms():
    # m = 2, kp = 50, kd = 8: L = (8 s + 50)/(2 s^2) at the torque; 50/(2 s^2 + 8 s) at the angle
    found = frequency_response(hand_made(2.0, 0.0, 0.0, -50.0, -8.0), W)
    s = 1j * W
    torque, angle, rate = found.channels

    np.testing.assert_allclose(torque.L, (8 * s + 50) / (2 * s**2), rtol=1e-12)
    np.testing.assert_allclose(angle.L, 50 / (2 * s**2 + 8 * s), rtol=1e-12)
    np.testing.assert_allclose(rate.L, 8 * s / (2 * s**2 + 50), rtol=1e-12)
    closed = 2 * s**2 + 8 * s + 50
    np.testing.assert_allclose(found.process_sensitivity[:, 0, 0], 1 / closed, rtol=1e-12)
    np.testing.assert_allclose(found.control_effort[:, 0, 0], 50 * 2 * s**2 / closed, rtol=1e-12)
    np.testing.assert_allclose(found.control_effort[:, 0, 1], 8 * 2 * s**2 / closed, rtol=1e-12)
    assert torque.margins.gain_up_db == np.inf


def test_a_slight_resonance_is_not_missed():
    # a mode of damping ratio 1e-4 beside a joint: its peak is four decades high and narrow
    m, k = np.diag([1.0, 0.3]), 0.3 * 40.0**2 * np.array([[1.0, -1.0], [-1.0, 1.0]])
    d = 2e-4 * k / (40.0 * np.sqrt(1.3))
    loop = hand_made(m, d, k, np.array([[-9.0, 0.0]]), np.array([[-4.0, 0.0]]))
    found = frequency_response(loop)
    peak = found.channels[0].margins.peaks

    assert found.complementary[:, 0].max() == pytest.approx(peak.Mt, rel=1e-6)
    L = np.abs(found.channels[0].L)
    poles = np.linalg.eigvals(break_loop(loop).opened([0]))
    free = np.abs(poles.imag).max()
    inner = found.w[(found.w > 0.9 * free) & (found.w < 1.1 * free)]
    direct = np.abs(systems(loop)["tau.joint1"](1j * free))
    near = np.abs(found.w - free) <= (inner.max() - inner.min())
    assert L[near].max() == pytest.approx(direct, rel=1e-3)


@pytest.mark.slow
def test_a_sampled_loop_ends_at_its_nyquist_frequency_and_tends_to_the_continuous_one():
    whole = frequency_response(hand_made(M, D, K, *GAINS), W[:2])
    errors = []
    for T in (1e-2, 1e-3):
        loop = hand_made(M, D, K, *GAINS, sample_time=T)
        sampled = frequency_response(loop, W[:2])
        pairs = zip(whole.channels, sampled.channels, strict=True)
        errors.append(max(np.abs(one.L / two.L - 1).max() for one, two in pairs))
        assert frequency_response(loop).w[-1] == pytest.approx(np.pi / T, rel=1e-12)

    assert errors[1] < 0.02
    assert errors[0] / errors[1] == pytest.approx(10, rel=0.1)  # the hold is of first order


def test_an_unstable_loop_has_a_loop_gain_and_no_margins():
    found = frequency_response(hand_made(2.0, 0.0, 0.0, -50.0, 8.0), W)
    s = 1j * W

    assert "expected eigenvalues that all decay" in found.no_margins
    assert found.peaks is None
    assert all(one.margins is None for one in found.channels)
    np.testing.assert_allclose(found.channels[0].L, (-8 * s + 50) / (2 * s**2), rtol=1e-12)


@pytest.mark.parametrize(
    "w", [[], [0.0, 1.0], [2.0, 1.0], [-1.0], [np.nan], [[1.0, 2.0]], [1.0, 1.01 * np.pi / T]]
)
def test_frequencies_are_positive_ascending_and_below_nyquist(w):
    with pytest.raises(InputError, match=r"^w: expected"):
        frequency_response(hand_made(M, D, K, *GAINS, sample_time=T), w)


def test_a_loop_without_feedback_is_refused():
    with pytest.raises(InputError, match="expected one with feedback"):
        frequency_response(hand_made(2.0, 0.0, 0.0, 0.0, 0.0))


def test_a_peak_of_a_sampled_loop_at_the_nyquist_frequency_is_told_there():
    # an overdamped inertia at 1 kHz: |S| grows up to z = -1
    T = 1e-3
    loop = hand_made(1.0, 0.0, 0.0, -100.0, -100.0, sample_time=T)
    cut = break_loop(loop)
    w = np.linspace(1.0, np.pi / T, 4001)
    S = np.abs(1 / (1 + cut.loop_gain(0, w)))
    found = sensitivity_peaks(cut)

    assert S.argmax() == len(w) - 1
    assert found.Ms == pytest.approx(S.max(), rel=1e-9)
    assert found.Ms_frequency == pytest.approx(np.pi / T, rel=1e-9)
