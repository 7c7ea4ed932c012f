"""Ends of margins: derivatives against differences of exact margins, and where limits are lost."""

from dataclasses import replace

import numpy as np
import pytest

import flexctl
import flexctl.search.tuning.point as points
from flexctl import load_design, load_model
from flexctl.search.tuning.margin_ends import margin_ends
from flexctl.search.tuning.reading import read_problem
from flexctl.search.tuning.verification import (
    exact_limits,
    verdict_on,
    verified,
    watched_over,
)
from flexctl.verdict import linear_poses_metrics

RRP = ("theodore-ghosal-rrp", "rrp-stiff")  # bears 0.3 % of stiffness error
VERTICAL = ("vertical-2r", "vertical-2r-cascade")  # sampled, under gravity
OBSERVED = ("single-link-hub", "hub-lqg")
RATE = "margins.min_sampling_rate"
PATH = "stiffness.exact.path_alpha_upper>=0.1"


def problem_of(arm, design, *limits):
    known = load_model(arm), load_design(design)
    problem = read_problem(*known, (), minimise="residual.tip_error_max", subject_to=limits)
    return watched_over(problem, ({},))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arm", "limits"),
    [
        (RRP, [PATH, "stiffness.exact.alpha_upper>=0.1", "margins.phase_deg>=30"]),
        (VERTICAL, ["margins.gain_db>=6", "margins.phase_deg>=30"]),
        (OBSERVED, ["stiffness.exact.alpha_lower<=-0.9", "margins.gain_db>=20"]),
        (("vertical-2r", "vertical-2r-lqg"), ["margins.min_sampling_rate<=120"]),
    ],
    ids=["decoupling", "cascade", "observer", "sampling rate"],
)
def test_ends_of_margins_move_as_exact_margins_do(arm, limits):
    problem = exact_limits(problem_of(*arm, *limits))
    start = problem.free.start
    for one in problem.requirements:
        values, slopes = problem.point(start)._ends(one, 0)
        exact, expected = problem.point(start)._differences(
            lambda at, one=one: at._excess(at, one, 0)
        )
        for value, slope in zip(values, slopes, strict=True):
            if value <= -1:  # far from its limit, where it counts for nothing
                continue
            known = np.isclose(exact, value, rtol=1e-9)  # gain margins have the nearer side alone
            assert known.any() or value < exact.max()
            size = np.abs(expected).max()
            for own in expected[known]:
                np.testing.assert_allclose(slope, own, rtol=2e-3, atol=1e-3 * size)


@pytest.mark.slow
def test_an_end_beside_the_loss_of_an_equilibrium_has_no_slopes():
    """Links too soft for their own weight: eigenvalues move much faster on one side of the end."""
    limit = "stiffness.exact.path_alpha_lower<=-0.9"
    problem = exact_limits(problem_of("vertical-2r", "vertical-2r-encoders", limit))
    here, (one,) = problem.point(problem.free.start), problem.requirements
    slopes = here._ends(one, 0)
    (end,) = margin_ends(one.key, here._verdicts[0])

    def rate(error):
        return here.linear(replace(end.case(end.value), error=error)).poles.real.max()

    below, at, above = (rate(end.value + change) for change in (-1e-4, 0, 1e-4))
    assert end.value == pytest.approx(-0.998, abs=1e-3)
    assert abs(at - above) > 5 * abs(at - below)
    assert slopes is None


@pytest.mark.slow
def test_what_is_watched_next_is_where_the_loop_is_least_stable():
    problem = problem_of(*RRP, PATH)
    start = problem.free.start
    found = verified(problem, start, verdict_on(problem, start, {}), {})
    (end, worst), = found.lost  # fmt: skip
    here = problem.point(start, slopes=False)

    def rate(error):
        return here.linear(replace(end, error=error)).poles.real.max()

    assert 0 < end.error < 0.005
    assert rate(end.error) == pytest.approx(0, abs=1e-6 * abs(rate(0.1)))
    assert end.error < worst.error <= 0.1
    grid = [rate(error) for error in np.linspace(end.error, 0.1, 41)]
    assert rate(worst.error) > 0.9 * max(grid)


@pytest.mark.parametrize("design", ["hub-pd", "hub-pid", "hub-lqg"])
def test_the_loop_at_the_limit_of_the_sampling_rate_tells_whether_it_is_kept(design):
    loop = problem_of("single-link-hub", design).loop(0)
    rate = linear_poses_metrics(loop, [RATE])[RATE]
    for factor, kept in ((1.01, True), (0.99, False)):
        problem = problem_of("single-link-hub", design, f"{RATE}<={factor * rate!r}")
        values, _, owners = problem.point(problem.free.start, slopes=False).eigenvalues()
        own = [x for x, k in zip(values, owners, strict=True) if k == 0]
        assert (max(own) < 0) == kept


def test_a_rate_that_the_design_refuses_is_limited_by_its_value():
    # its notch lies above the Nyquist frequency there
    problem = problem_of(*VERTICAL, f"{RATE}<=1")
    excess, _, owners = problem.point(problem.free.start, slopes=False).limits()
    assert len(problem.spectral) == 1
    assert owners == [0]
    assert excess[0] > 1


def test_numbers_with_which_the_design_refuses_the_rate_are_kept_away_from():
    # a derivative filter above the Nyquist frequency of 100 Hz
    known = load_model("single-link-hub"), load_design("hub-pid")
    free = {"gains.derivative_filter": (100.0, 400.0)}
    problem = read_problem(*known, free, minimise="effort.peak", subject_to=[f"{RATE}<=100"])
    (one,) = problem.free.numbers
    for filter_, there in ((310.0, True), (318.0, False)):
        pieces = problem.at(np.array([one.place(filter_)]), slopes=False)
        assert np.isfinite(pieces.values).all() == there


def test_tuning_keeps_a_limit_of_the_sampling_rate():
    free, least = {"gains.Gp": (5.0, 500.0), "gains.Gv": (1.0, 50.0)}, "residual.tip_error_max"
    found = flexctl.tune(
        "single-link-hub", "hub-pd", free, minimise=least, subject_to=[f"{RATE}<=25"], starts=1
    )
    (limit,) = found.constraints
    alone = flexctl.compare("single-link-hub", [found.tuned], baseline=False).evaluations[0]
    assert found.feasible
    assert limit.before > 25 >= limit.value
    assert alone.min_sampling_rate == pytest.approx(limit.value, rel=1e-9)


@pytest.mark.slow
def test_searches_for_limits_alone_run_nothing_for_the_objective(monkeypatch):
    problem = problem_of(*OBSERVED, "margins.gain_db>=20")
    runs, plain = [], points.simulate
    monkeypatch.setattr(points, "simulate", lambda *a, **k: runs.append(1) or plain(*a, **k))
    whole, _ = problem.judged(problem.point(problem.free.start))
    every = len(runs)
    alone, _ = problem.judged(problem.point(problem.free.start), limits_alone=True)

    assert len(runs) - every == 1  # whether there is a run at all
    assert every == 1 + problem.free.start.size
    assert whole.gradients.any()
    assert not alone.gradients.any()
    np.testing.assert_array_equal(alone.values, whole.values)
    np.testing.assert_array_equal(alone.constraint_gradients, whole.constraint_gradients)
