"""The small-gain test of neglected modes: its identity, closed forms, and what it cannot prove."""

from dataclasses import replace

import numpy as np
import pytest

from flexctl.control import design_controller
from flexctl.loop.closed_loop import close_loop
from flexctl.model.record import BasisChoice
from flexctl.verdict.broken_loop import break_loop
from flexctl.verdict.evaluation import evaluate
from flexctl.verdict.loop_responses import frequency_response
from flexctl.verdict.named_metrics import metrics
from flexctl.verdict.neglected_modes import (
    NeglectedModes,
    neglected_modes,
    products,
    small_gain_test,
)
from flexctl.verdict.partial_verdicts import linear_poses_metrics
from flexctl.view.explain import explain
from flexctl.view.json.responses import neglected_json
from flexctl.view.to_json import to_json
from flexctl.view.words.responses import neglected_words
from tests.arms import make_arm, single_link, two_link
from tests.designs import make_design
from tests.loops import hand_made

pytestmark = pytest.mark.usefixtures("no_compiler")
J, KP, KD = 1.5, 24.0, 9.0


def rigid():
    return hand_made(J, 0.0, 0.0, -KP, -KD)


def with_mode(omega, damping, share=0.1):
    """The same inertia at rest, a share of it behind a spring: a collocated resonance above it."""
    m = np.diag([J * (1 - share), J * share])
    k = J * share * omega**2 * np.array([[1.0, -1.0], [-1.0, 1.0]])
    d = 2 * damping / omega * k
    return hand_made(m, d, k, np.array([[-KP, 0.0]]), np.array([[-KD, 0.0]]))


def test_the_product_is_that_of_the_closed_form():
    # rigid: L = (9 s + 24)/(1.5 s^2); E = P_t/P - 1 of the collocated pair
    omega, zeta, share = 60.0, 0.4, 0.1
    w = np.geomspace(0.5, 500, 40)
    cuts = break_loop(rigid()), break_loop(with_mode(omega, zeta, share))
    s = 1j * w
    damper = 2 * zeta * omega * s + omega**2
    whole = (1 - share) * s**2 + share * s**2 * damper / (s**2 + damper)
    E = s**2 / whole - 1
    T = (KD * s + KP) / (J * s**2 + KD * s + KP)

    found = products(cuts, [cut.opened([0]) for cut in cuts], w)
    np.testing.assert_allclose(found, np.abs(T * E), rtol=1e-7)


def test_a_well_damped_mode_is_proven_harmless_and_a_slight_one_is_not():
    harmless = small_gain_test(rigid(), with_mode(120.0, 0.5), None)
    slight = small_gain_test(rigid(), with_mode(120.0, 1e-4), None)

    assert harmless.peak < 1
    assert harmless.proven
    assert slight.peak > 1
    assert not slight.proven
    assert slight.stable  # collocated: its phase does no harm
    free = 120.0 / np.sqrt(0.9)  # of both inertias on the spring
    assert slight.frequency == pytest.approx(free, rel=1e-3)


def test_a_slight_resonance_is_resolved_to_its_top():
    found = small_gain_test(rigid(), with_mode(120.0, 1e-4), None)
    w = found.frequency * (1 + np.linspace(-1e-5, 1e-5, 2001))
    cuts = break_loop(rigid()), break_loop(with_mode(120.0, 1e-4))
    near = products(cuts, [cut.opened([0]) for cut in cuts], w)

    assert found.peak == pytest.approx(near.max(), rel=1e-5)
    assert found.scaled_peak == found.peak  # of one torque


def test_what_is_proven_is_stable_for_all_phases():
    # an all-pass in front of the error keeps its size: stable for every sign and lag
    harmless = small_gain_test(rigid(), with_mode(120.0, 0.5), None)
    w = np.geomspace(0.1, 2000, 4000)
    cuts = break_loop(rigid()), break_loop(with_mode(120.0, 0.5))
    L = [cut.loop_gain(0, w) for cut in cuts]
    E = L[1] / L[0] - 1
    assert harmless.proven
    for angle in np.linspace(0, 2 * np.pi, 25):
        turned = L[0] * (1 + E * np.exp(1j * angle))
        assert np.abs(1 + turned).min() > 0.1


def test_other_numbers_of_unstable_poles_prove_nothing():
    falling = hand_made(J, 0.0, -5.0, -KP, -KD)  # a load that falls: one unstable pole
    found = small_gain_test(rigid(), falling, None)

    assert (found.unstable_design, found.unstable_truth) == (0, 1)
    assert not found.proven
    assert found.stable


def test_a_torque_without_feedback_has_no_error():
    loop = hand_made(np.eye(2), np.eye(2), np.eye(2), [[-4.0, 0], [0, 0]], [[-3.0, 0], [0, 0]])
    found = small_gain_test(loop, loop, None)

    assert "no feedback" in found.why
    assert found.abscissa_truth == pytest.approx(-0.5)  # s^2 + s + 1 of the second joint
    assert found.stable is True
    assert not found.proven


def test_what_has_no_equilibrium_has_no_numbers_and_is_neither_stable_nor_not():
    lost = NeglectedModes(t=0.2, why="no equilibrium")
    answer = neglected_json(lost)

    assert answer["stable"] is None
    assert answer["proven"] is False
    assert answer["unstable_poles"] == {"design": None, "truth": None}


def test_poses_without_a_result_are_counted_beside_those_that_are_judged():
    loop = closed(single_link(), [0.0], [0.6], 2)
    record = frequency_response(loop, [1.0])
    lost = NeglectedModes(t=0.2, why="no equilibrium")
    good = replace(lost, why="", peak=0.5, frequency=3.0, scaled_peak=0.5)
    good = replace(good, abscissa_design=-1.0, abscissa_truth=-1.0)
    missing = "The effect of neglected modes could not be judged{} (no equilibrium)."

    for found, judged, said in (
        ((good, lost, good), "At the judged poses", missing.format(" at 1 of 3 poses")),
        ((good, lost), "At the judged pose ", missing.format(" at 1 of 2 poses")),
        ((lost,), "", missing.format("")),
        ((good, good), "At the judged poses", ""),
    ):
        words = neglected_words(replace(record, neglected=found))
        assert words.startswith(judged)
        assert ("whatever its phase" in words) == bool(judged)
        assert words.endswith(said)
        assert ("not be judged" in words) == bool(said)


def test_poses_that_are_unstable_on_the_truth_are_counted():
    record = frequency_response(closed(single_link(), [0.0], [0.6], 2), [1.0])
    near = NeglectedModes(t=0.2, peak=1.5, frequency=3.0, scaled_peak=1.5, why="")
    near = replace(near, abscissa_design=-1.0, abscissa_truth=-1.0)
    lost = replace(near, abscissa_truth=0.3)

    for found, said in (
        ((near, near), "is stable."),
        ((near, lost), "is not stable at 1 of 2 poses."),
        ((lost,), "is not stable."),
    ):
        words = neglected_words(replace(record, neglected=found))
        assert words.endswith(f"by its eigenvalues the loop on the truth {said}")


def test_an_infinite_size_of_what_is_neglected_is_said_without_a_number():
    record = frequency_response(closed(single_link(), [0.0], [0.6], 2), [1.0, 200.0])
    pose = NeglectedModes(t=None, peak=np.inf, frequency=126.0, scaled_peak=np.inf)
    pose = replace(pose, abscissa_design=-1.0, abscissa_truth=-1.0)
    words = neglected_words(replace(record, neglected=(pose,)))

    assert "has no limit at 126 rad/s: an undamped pole or zero that only one" in words
    assert "inf " not in words


def closed(arm, start, end, truth, **tables):
    controller = design_controller(arm, make_design(start, end, **tables), BasisChoice(order=2))
    return close_loop(controller, arm, BasisChoice(order=truth))


def test_nothing_is_neglected_where_the_truth_is_the_design_plant():
    loop = closed(single_link(), [0.0], [0.6], 2)
    record = frequency_response(loop, [1.0], n_path=2)

    assert len(record.neglected) == 3
    assert all(one.proven and one.peak < 1e-6 for one in record.neglected)
    assert "neglects" not in explain(record)


def test_neglected_modes_of_an_arm_are_judged_beside_its_eigenvalues():
    arm = two_link((0.0, -9.81, 0.0), EI=40.0)
    loop = closed(arm, [-1.2, 0.3], [-0.5, 0.9], 4, method="joint-pd")
    (found,) = neglected_modes(loop)

    assert found.peak > 1  # it has no damping
    assert not found.proven
    words = explain(frequency_response(loop, [1.0]))
    assert "not proven by its size" in words
    answer = to_json(frequency_response(loop, [1.0]))["neglected"][0]
    assert answer["proven"] is False
    assert answer["t"] is None


def test_an_undamped_mode_that_the_design_lacks_has_no_finite_size():
    free = 120.0 / np.sqrt(0.9)
    found = small_gain_test(rigid(), with_mode(120.0, 0.0), None)

    assert found.peak == np.inf
    assert found.frequency == pytest.approx(free, rel=1e-9)
    assert not found.proven
    same = small_gain_test(with_mode(120.0, 0.0), with_mode(120.0, 0.0), None)
    assert same.peak < 1e-6


def test_an_undamped_pendulum_that_is_slower_than_the_closed_loops_has_no_finite_size():
    slow, slower = (hand_made(J, 0.0, J * omega**2, -KP, -KD) for omega in (0.30, 0.25))
    found = small_gain_test(slow, slower, None)

    assert found.peak == np.inf
    assert found.frequency == pytest.approx(0.25, rel=1e-9)
    assert not found.proven


def test_friction_that_only_the_truth_has_is_an_error_of_size_1_at_low_frequencies():
    # E = -d/(J s + d): its supremum is at s = 0, where T is 1
    found = small_gain_test(rigid(), hand_made(J, 0.01, 0.0, -KP, -KD), None)

    assert found.peak == pytest.approx(1.0, abs=1e-3)
    assert found.peak < 1
    assert not found.proven
    assert found.stable
    record = frequency_response(closed(single_link(), [0.0], [0.6], 2), [1.0, 200.0])
    words = neglected_words(replace(record, neglected=(found,)))
    assert "reaches 1 " in words
    assert "unstable" not in words


def between_drives(damping):
    """Two driven inertias, and between them on springs a third: a zero at 40 rad/s, at 0.5 J."""
    m, k = np.diag([J, 0.8 * J, 0.5 * J]), 0.25 * J * 40.0**2
    stiffness = k * np.array([[1.0, 0, -1], [0, 1, -1], [-1, -1, 2]])
    gains = [np.hstack([-gain * np.eye(2), np.zeros((2, 1))]) for gain in (KP, KD)]
    return hand_made(m, damping * stiffness, stiffness, *gains)


def test_an_undamped_zero_of_several_torques_has_no_finite_size():
    found = small_gain_test(between_drives(0.0), between_drives(1e-4), None)

    assert found.scaled_peak == np.inf
    assert found.frequency == pytest.approx(40.0, rel=1e-9)
    same = small_gain_test(between_drives(0.0), between_drives(0.0), None)
    assert same.peak < 1e-6


def test_a_slight_zero_of_several_torques_is_resolved_to_its_top():
    # a ratio of damping of 2e-4, so that the grid beside poles alone misses it
    loops = between_drives(1e-5), between_drives(1e-4)
    found = small_gain_test(*loops, None)
    cuts = tuple(map(break_loop, loops))
    w = 40.0 * (1 + np.linspace(-3e-3, 3e-3, 6001))
    near = products(cuts, [cut.opened([0, 1]) for cut in cuts], w)

    assert found.peak == pytest.approx(near.max(), rel=1e-5)
    assert found.frequency == pytest.approx(40.0, rel=1e-3)


def test_a_frequency_that_meets_a_zero_exactly_is_passed_over(monkeypatch):
    loops = between_drives(1e-5), between_drives(1e-4)
    expected = small_gain_test(*loops, None)
    solve, met = np.linalg.solve, []

    def exact(L, b):
        if len(L) > 100 and not met:  # at all frequencies at once
            met.append(L)
            raise np.linalg.LinAlgError("Singular matrix")
        return solve(L, b)

    monkeypatch.setattr(np.linalg, "solve", exact)
    found = small_gain_test(*loops, None)
    assert met
    assert (found.why, found.peak) == ("", expected.peak)


def test_zeros_of_sampled_inertias_at_the_nyquist_frequency_are_none():
    gains = [-gain * np.eye(2) for gain in (KP, KD)]
    m, d = np.diag([J, J]), np.diag([0.01, 0.02])
    loops = [hand_made(m, x, 0 * m, *gains, sample_time=1e-3) for x in (0 * d, d)]
    found = small_gain_test(*loops, None)

    assert found.peak == pytest.approx(1.0, abs=1e-3)
    assert found.frequency < 0.1


def test_an_undamped_mode_that_the_torque_does_not_move_is_no_error():
    # beside the inertia one on a spring of its own
    m, k = np.diag([J, 0.2]), np.diag([0.0, 0.2 * 50.0**2])
    beside = hand_made(m, 0 * m, k, np.array([[-KP, 0.0]]), np.array([[-KD, 0.0]]))

    assert small_gain_test(rigid(), beside, None).peak < 1e-6


def test_a_slow_unstable_pole_counts_beside_fast_modes():
    falling = hand_made(J, 0.0, -0.4, -KP, -KD)
    m = np.diag([J * 0.999, J * 0.001])
    k = J * 0.001 * 1e6**2 * np.array([[1.0, -1.0], [-1.0, 1.0]]) - np.diag([0.4, 0.0])
    fine = hand_made(m, 0.01 / 1e6 * k, k, np.array([[-KP, 0.0]]), np.array([[-KD, 0.0]]))
    found = small_gain_test(falling, fine, None)

    assert (found.unstable_design, found.unstable_truth) == (1, 1)


def test_a_pose_at_which_links_buckle_has_no_result_and_the_others_have_theirs():
    # from hanging over upright, where the link buckles under gravity, to hanging
    link = {"joint": "revolute", "length": 1.0, "mass_per_length": 0.3, "joint_inertia": 0.5}
    arm = make_arm([link | {"EI": {"y": 0.5}}], (0.0, -9.81, 0.0), {"mass": 0.05})
    loop = closed(arm, [-np.pi / 2], [1.5 * np.pi], 3, method="joint-pd")
    first, *path = neglected_modes(loop, n_path=3)

    assert not first.why
    assert [one.t for one in path] == pytest.approx([0.0, 0.25, 0.5])
    assert [bool(one.why) for one in path] == [False, True, False]
    assert "buckle" in path[1].why
    assert path[1].stable is None


def coupled_inertias(rho):
    """Loops of inertias a and b with the same T, alone and coupled by c = rho sqrt(a b)."""
    a, b = J, 0.01 * J
    c, alone = rho * np.sqrt(a * b), np.diag([a, b])
    none, feedback = 0 * alone, (-KP / J * alone, -KD / J * alone)
    coupled = np.array([[a, c], [c, b]])
    return [hand_made(M, none, none, *feedback) for M in (alone, coupled)]


@pytest.mark.parametrize(("rho", "proven"), [(0.2, True), (0.7, False)])
def test_the_peak_is_without_scaling_of_torques_and_the_scaled_one_decides(rho, proven):
    # E = M M_t^-1 - I, [[rho^2, -rho r], [-rho/r, rho^2]]/(1 - rho^2) with r = sqrt(a/b) = 10,
    # of norm rho/(1 - rho) with r scaled to 1; T is one number times I
    found = small_gain_test(*coupled_inertias(rho), None)
    s = 1j * np.linspace(0.01, 20.0, 200001)
    Mt = np.abs((KD * s + KP) / (J * s**2 + KD * s + KP)).max()
    E = np.array([[rho**2, -10 * rho], [-rho / 10, rho**2]]) / (1 - rho**2)

    assert found.peak == pytest.approx(Mt * np.linalg.norm(E, 2), rel=1e-6)
    assert found.scaled_peak == pytest.approx(Mt * rho / (1 - rho), rel=1e-6)
    assert found.peak > 1
    assert found.proven == proven
    assert found.stable
    record = frequency_response(closed(single_link(), [0.0], [0.6], 2), [1.0, 200.0])
    words = neglected_words(replace(record, neglected=(found,)))
    answer = neglected_json(found)
    assert f"{found.peak:.3g} at" in words
    assert f", with scaled torques {found.scaled_peak:.3g}" in words
    assert ("not proven" in words) != proven
    assert (answer["peak"], answer["scaled_peak"]) == (found.peak, found.scaled_peak)


@pytest.mark.parametrize("design", ["vertical-2r-encoders", "vertical-2r-shaped", "vertical-2r-pd"])
def test_a_verdict_has_the_test_of_its_final_pose(design):
    controller = design_controller("vertical-2r", design)
    loop = close_loop(controller, "vertical-2r", elements=3)
    (expected,) = neglected_modes(loop)
    whole = evaluate(loop)
    assert whole.neglected.proven == expected.proven
    sizes = [(one.peak, one.scaled_peak, one.frequency) for one in (whole.neglected, expected)]
    assert sizes[0] == pytest.approx(sizes[1], rel=1e-6)
    key = "neglected.scaled_peak"
    assert metrics(whole)[key] == pytest.approx(expected.scaled_peak, rel=1e-6)
    assert linear_poses_metrics(loop, [key])[key] == pytest.approx(expected.scaled_peak, rel=1e-6)


def test_a_test_of_neglected_modes_that_cannot_be_made_is_no_metric():
    loop = close_loop(design_controller("single-link-hub", "hub-pd"), "single-link-hub", modes=2)
    whole = replace(evaluate(loop), neglected=NeglectedModes(t=None, why="no equilibrium"))
    assert metrics(whole)["neglected.scaled_peak"] is None
    assert to_json(whole)["neglected"]["why"] == "no equilibrium"
