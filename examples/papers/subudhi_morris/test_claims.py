"""Every claim of Subudhi and Morris has its verdict, and the numbers behind it are computed."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.linalg

from examples.papers import claims_of
from examples.papers.subudhi_morris import control, links, scales
from examples.papers.subudhi_morris.arm import (
    TWO_MODES,
    arm,
    bang_bang,
    decay_rate,
    linear,
    ripple,
)
from flexctl.control import design_controller
from flexctl.loop.closed_loop import close_around
from flexctl.loop.linear import (
    linearise_loop,
)
from flexctl.model.lookup import load_design

HOLDS = {
    "abstract",
    "section 3",
    "equation 66",
    "section 5, controllability",
    "section 6, integration",
    "figure 6 b",
    "equation 71",
    "conclusion, control",
}
OPEN = {
    "figure 8 d",
    "conclusion, verification",
}


@pytest.fixture(scope="module")
def claims():
    found = [make() for make in claims_of("subudhi-morris")]
    return {claim.id: claim for claim in found}


@pytest.mark.slow  # all claims together; four of them are quick tests of `make papers`
def test_no_claim_has_the_name_of_another(claims):
    assert len(claims) == len(claims_of("subudhi-morris"))


@pytest.mark.slow  # all claims together; four of them are quick tests of `make papers`
@pytest.mark.parametrize(
    ("verdict", "expected"), [("holds", HOLDS), ("cannot be checked", OPEN), ("differs", None)]
)
def test_every_claim_has_its_verdict(claims, verdict, expected):
    found = {name for name, claim in claims.items() if claim.verdict == verdict}

    assert found == (set(claims) - HOLDS - OPEN if expected is None else expected)


@pytest.mark.slow  # all claims together; four of them are quick tests of `make papers`
def test_what_differs_says_why(claims):
    assert all(claim.why for claim in claims.values() if claim.verdict != "holds")


@pytest.mark.slow  # all claims together; four of them are quick tests of `make papers`
@pytest.mark.parametrize(
    ("claim", "number", "low", "high"),
    [
        ("assumption IV", "deflection_over_length", 0.08, 0.1),
        ("assumption IV", "change", 0.01, 0.02),
        ("assumption VI", "change", 0.3, 0.4),
        ("section 3", "frozen", 1e-5, 1e-3),
        ("equation 22", "right", 0.015 * (1 - 1e-12), 0.015 * (1 + 1e-12)),
        ("equation 22", "right_equal", 0.025 * (1 - 1e-9), 0.025 * (1 + 1e-9)),
        ("equation 22", "printed", 0.025 * (1 - 1e-12), 0.025 * (1 + 1e-12)),
        ("equation 42", "right", 8, 8),
        ("equations 29, 30", "printed_1", 3.5, 3.7),
        ("equations 29, 30", "printed_2", 18, 19.5),
        ("equation 31", "printed_1", 3.9, 4.1),
        ("equation 37", "printed", -1.8, -1.7),
        ("equations 38, 39", "printed_1", 1.4, 1.6),
        ("equations 40, 46", "ratio_11", 70, 75),
        ("equations 40, 46", "ratio_12", 3, 4),
        ("equations 40, 46", "ratio_21", 7, 8),
        ("equations 40, 46", "ratio_22", 5, 6),
        ("equations 40, 46", "right_frequency", 4.3502, 4.3503),
        ("equations 40, 46", "printed_frequency", 0.5, 0.6),
        ("equation 47", "printed_1", 4.8, 4.83),
        ("equation 48", "printed_1", 7.2, 7.3),
        ("equations 53 to 55", "without_J", 41, 43),
        ("section 4, epsilon", "epsilon", 0.55, 0.58),
        ("section 4, epsilon", "ratio", 6.0, 6.2),
        ("equation 67", "printed_1", 41.5, 42.5),
        ("equation 69", "without", 0.13, 0.15),
        ("equation 69", "with", 0.0, 1e-8),
        ("section 5, controllability", "least", 0.02, 0.03),
        ("section 6, integration", "fastest", 2499, 2500),
        ("section 6, integration", "error", 1e-5, 1e-3),
        ("section 6, integration", "kept", 0.5, 0.52),
        ("figure 4 b, c", "soft_1", 0.05, 0.1),
        ("figures 4 d, 5 a to c", "ratio_1", 0.97, 0.99),
        ("figures 4 d, 5 a to c", "ratio_4", 0.88, 0.91),
        ("figures 5 d, 6 a", "flexible_1", 0.0440, 0.0443),
        ("figures 5 d, 6 a", "rigid_1", 0.0450, 0.0452),
        ("figures 5 d, 6 a", "soft_1", 0.090, 0.096),
        ("figures 4 to 6, decay", "flexible", 0.04, 0.06),
        ("figures 4 to 6, decay", "rigid", 0.04, 0.06),
        ("figures 4 to 6, decay", "soft", 0.0, 0.005),
        ("figures 4 to 6, decay", "undamped", 0.0, 0.01),
        ("figures 5 d, 6 a, frequency", "ratio_1", 0.98, 0.99),
        ("figure 6 b", "wound_1", 3.8e-3, 4.0e-3),
        ("figure 6 b", "wound_2", 3.1e-3, 3.3e-3),
        ("section 6, gains", "growth", 1e4, 1e5),
        ("section 6, gains", "fast_share", 0.005, 0.03),
        ("section 6, gains", "whole_share", 0.0, 1e-3),
        ("section 6, gains", "whole_share_other", 0.005, 0.02),
        ("figure 7 a", "ours_1", 0.10, 0.13),
        ("figure 7 a", "settling_time", 2.0, 2.2),
        ("figures 7 c, d, 8 a, b", "ratio_1", 0.2, 0.35),
        ("figures 7 c, d, 8 a, b", "damping_ours", 0.15, 0.2),
        ("figures 7 c, d, 8 a, b", "damping_slow", 0.005, 0.01),
        ("figures 7 b, 8 c", "ratio_3", 0.2, 0.35),
        ("conclusion, control", "ours", 3e-3, 4e-3),
        ("conclusion, verification", "imbalance", 0.0, 1e-9),
    ],
)
def test_the_numbers_behind_a_claim(claims, claim, number, low, high):
    assert low <= claims[claim].numbers[number] <= high


@pytest.mark.slow  # all claims together; four of them are quick tests of `make papers`
# The right form of a misprint gives what the plant gives, by another derivation.
@pytest.mark.parametrize(
    ("claim", "number", "expected"),
    [
        ("equations 29, 30", "right_1", 4.20837052),
        ("equation 31", "right_2", 35.31170022),
        ("equations 38, 39", "right_1", 4.20837052),
        ("equation 48", "right_1", 11.81615626),
        ("equations 53 to 55", "with_J", 13.78976702),
        ("equation 67", "right_1", 13.5851156),
        ("equation 67", "right_6", 2499.30711),
    ],
)
def test_the_right_form_gives_the_frequency_of_the_catalogue(claims, claim, number, expected):
    assert claims[claim].numbers[number] == pytest.approx(expected, rel=1e-8)


@pytest.mark.slow  # all claims together; four of them are quick tests of `make papers`
def test_the_wind_up_of_64_is_the_quasi_steady_manifold(claims):
    found = claims["equation 63"].numbers

    assert found["by_64_1"] == pytest.approx(found["right_1"], rel=1e-12)
    assert found["by_64_2"] == pytest.approx(found["right_2"], rel=1e-12)


@pytest.mark.slow  # all claims together; four of them are quick tests of `make papers`
def test_the_limit_of_stiff_joints_is_reached_in_proportion_to_their_softness(claims):
    found = claims["equations 53 to 55"].numbers

    # at 1e8 N m/rad; at 100 it is 1.5 % off
    assert found["limit"] == pytest.approx(found["with_J"], rel=1e-6)


def test_a_clamped_link_without_load_is_a_cantilever():
    length, rho, EI = links.line()
    expected = np.array([1.8751040687, 4.6940911330]) ** 2 / length**2 * np.sqrt(EI / rho)

    assert links.clamped_frequencies((0, 0), (0, 0)) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("design", ["subudhi-morris-lqr", "subudhi-morris-printed"])
def test_the_written_out_loop_has_the_eigenvalues_of_the_linearised_one(design):
    file = load_design(design)
    controller = design_controller(arm(), file, TWO_MODES)
    loop = linearise_loop(
        close_around(controller, controller.plant), controller.reference.final, 1.0
    )
    fast, gains = controller.fast, file.joint_gains
    written = control.whole_loop(fast.scales, fast.at(1.0), (gains.Gp[0], gains.Gv[0]))

    found, expected = (
        np.sort_complex(np.linalg.eigvals(A)) for A in (written, loop.A + loop.B @ loop.K)
    )
    assert found == pytest.approx(expected, rel=1e-6, abs=1e-6)


def test_the_distance_from_uncontrollability_is_zero_where_a_mode_has_no_input():
    found = scales.scales()
    modes = scipy.linalg.eigh(found.K_z, found.M_f)[1]
    accelerations = np.vstack([np.zeros((2, 2)), modes[:, :2]])  # of the first two modes alone
    blind = replace(found, B_T=found.M_T @ accelerations)

    assert scales.distance_from_uncontrollable(blind) == pytest.approx(0, abs=1e-9)


def test_ripple_takes_a_straight_line_out():
    t = np.linspace(0, 3, 3001)
    signal = 3.0 - 2.0 * t + 0.1 * np.sin(2 * np.pi * 5 * t)

    assert ripple(signal[None], t) == pytest.approx([0.1 / np.sqrt(2)], rel=1e-2)


def test_tips_decay_as_the_lowest_mode_that_they_show():
    # rigid joints: modes decay at 0.041, 0.15 and 0.09 1/s at the elbow where the arm comes to rest
    run = bang_bang(None, 0.01, duration=10.0)
    model = linear("links.damping_ratio=0.01", rigid_joints=True, elbow=float(run.q[1, -1]))
    rates = -np.array([p.real for p in model.poles() if 1 < p.imag < 50])

    assert rates.min() < decay_rate(run) < rates.max()
