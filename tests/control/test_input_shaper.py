"""Input shapers: impulses and residual vibration against an oscillator and closed forms."""

import numpy as np
import pytest
import scipy.linalg

from flexctl.control.input_shaper import InputShaper, make_shaper
from flexctl.errors import InputError

KINDS = ["ZV", "ZVD", "EI"]
RATIOS = [0.0, 0.02, 0.3]
W = 7.0


def left(shaper, w, ratio):
    """Amplitude after the impulses beside that after one at time 0, by the exponential of A."""
    A = np.array([[0.0, 1.0], [-(w**2), -2 * ratio * w]])
    x = np.zeros(2)
    for amplitude, wait in zip(shaper.amplitudes, np.diff(shaper.times, prepend=0.0), strict=True):
        x = scipy.linalg.expm(A * wait) @ x + np.array([0.0, amplitude])
    rate = (x[1] + ratio * w * x[0]) / np.sqrt(1 - ratio**2)  # in phase with the damped motion
    return np.hypot(w * x[0], rate) * np.sqrt(1 - ratio**2)


@pytest.mark.parametrize("ratio", RATIOS)
@pytest.mark.parametrize("kind", KINDS)
def test_the_residual_is_that_of_an_oscillator(kind, ratio):
    shaper, frequencies = make_shaper(kind, [W], [ratio], 0.05), W * np.linspace(0.5, 2.0, 7)

    found = shaper.residual(frequencies, ratio)

    assert found == pytest.approx([left(shaper, w, ratio) for w in frequencies], abs=1e-12)


@pytest.mark.parametrize("ratio", RATIOS)
@pytest.mark.parametrize("kind", KINDS)
def test_at_the_frequency_of_the_model_what_is_promised_is_left(kind, ratio):
    shaper = make_shaper(kind, [W], [ratio], 0.05)
    period = 2 * np.pi / (W * np.sqrt(1 - ratio**2))

    promised = 0.05 if kind == "EI" else 0.0
    assert shaper.residual(W, ratio) == pytest.approx(promised, abs=1e-14)
    assert shaper.amplitudes.sum() == pytest.approx(1.0, abs=1e-15)
    assert shaper.times[-1] == pytest.approx(period / (2 if kind == "ZV" else 1))


@pytest.mark.parametrize(
    ("kind", "closed_form"),
    [
        ("ZV", lambda r: np.abs(np.cos(np.pi * r / 2))),
        ("ZVD", lambda r: np.cos(np.pi * r / 2) ** 2),
        ("EI", lambda r: np.abs(0.475 + 0.525 * np.cos(np.pi * r))),
    ],
)
def test_without_damping_the_sensitivity_has_a_closed_form(kind, closed_form):
    # one half period apart: 1, 2 and 3 impulses add up as cosines of pi r / 2, r = w / w_model
    ratio = np.linspace(0.6, 1.4, 41)

    found = make_shaper(kind, [W], [0.0], 0.05).residual(W * ratio)

    assert found == pytest.approx(closed_form(ratio), abs=1e-14)


def test_a_zvd_is_flat_at_its_frequency_and_a_zv_is_not():
    step = 1e-4 * W
    slopes = [make_shaper(k, [W], [0.05], 0.05).residual(W + step, 0.05) / step for k in KINDS[:2]]

    assert slopes[1] < 1e-3 * slopes[0]


def test_an_ei_shaper_keeps_its_tolerance_over_the_widest_range():
    # insensitivity at 5 %: 6.5 %, 28.6 % and 39.9 % of the frequency for ZV, ZVD and EI
    ratio = np.linspace(0.7, 1.3, 60001)
    widths = []
    for kind in KINDS:
        within = make_shaper(kind, [W], [0.0], 0.05).residual(W * ratio) <= 0.05 + 1e-12
        widths.append(np.ptp(ratio[within]))

    assert widths == pytest.approx([0.0637, 0.287, 0.399], abs=2e-3)


@pytest.mark.parametrize("kind", KINDS)
def test_the_shaper_of_two_modes_has_the_residuals_of_both(kind):
    frequencies, ratios = [W, 2.7 * W], [0.02, 0.1]
    both = make_shaper(kind, frequencies, ratios, 0.03)
    one, other = (
        make_shaper(kind, [w], [ratio], 0.03) for w, ratio in zip(frequencies, ratios, strict=True)
    )

    product = one.residual(9.0, 0.1) * other.residual(9.0, 0.1)

    assert len(both.times) == len(one.times) * len(other.times)
    assert both.residual(9.0, 0.1) == pytest.approx(product, rel=1e-12)
    assert (np.diff(both.times) >= 0).all()


def test_a_mode_that_decays_by_itself_needs_no_ei_shaper():
    with pytest.raises(InputError, match=r"keeps more than the tolerance.*needs no shaper"):
        make_shaper("EI", [W], [0.6], 0.05)


@pytest.mark.parametrize(
    ("amplitudes", "times"), [([0.5, 0.6], [0, 1]), ([1.2, -0.2], [0, 1]), ([0.5, 0.5], [1, 0])]
)
def test_a_shaper_checks_itself(amplitudes, times):
    one = np.ones(1)
    with pytest.raises(InputError):
        InputShaper(
            kind="ZV",
            frequencies=one,
            damping_ratios=one,
            amplitudes=np.array(amplitudes),
            times=np.array(times),
        )
