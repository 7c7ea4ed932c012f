"""What a sweep says of its points: limits, shares, the numbers that matter, trade-offs."""

from dataclasses import replace

import numpy as np
import pytest

from flexctl.errors import InputError
from flexctl.model import BasisChoice
from flexctl.search import Limit, read_limit, sweep
from flexctl.search.statistics import influence, pareto_front, summarise
from flexctl.search.tuning.requirements import read_requirement

TRUTH = BasisChoice(kind="elements", order=2)


@pytest.fixture(scope="module")
def judged():
    """A few full verdicts on the single link, some without settling."""
    vary = {"gains.Gp": [5.0, 20.0, 60.0], "payload.mass": [0.1, 0.4]}
    how = {"limits": ["margins.phase_deg>=50", "effort.peak<=10"], "jobs": 1, "truth_basis": TRUTH}
    return sweep("single-link-hub", "hub-pd", vary, **how)


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        ("margins.gain_db>=6", Limit(key="margins.gain_db", least=True, value=6.0)),
        (" margins.disk > 0.5 ", Limit(key="margins.disk", least=True, value=0.5, strict=True)),
        ("effort.peak<=1e2", Limit(key="effort.peak", least=False, value=100.0)),
    ],
)
def test_limits_are_read(text, limit):
    assert read_limit(text) == limit
    assert read_limit(str(limit)) == limit


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("margins.disk", "METRIC>=NUMBER"),
        ("margins.disk==1", "METRIC>=NUMBER"),
        ("margin.disk>=1", "nearest: margins.disk"),
        ("margins.disk>=much", "a number after >=, got 'much'"),
        ("margins.disk>=nan", "a number after >="),
        ("margins.disk<=inf", "a number after <="),
    ],
)
def test_what_is_no_limit_is_refused(text, expected):
    with pytest.raises(InputError, match=f"limit: expected .*{expected}"):
        read_limit(text)


def test_a_margin_without_a_limit_keeps_limits_and_what_is_unknown_does_not():
    least, most = read_limit("margins.gain_db>=6"), read_limit("residual.settling_time<=1")
    assert least.holds(np.array([np.inf, 6.0, 5.9, np.nan])).tolist() == [True, True, False, False]
    assert most.holds(np.array([np.inf, 1.0, 1.1, np.nan])).tolist() == [False, True, False, False]


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("friction.slides>0", [False, True, True]),
        ("friction.slides>=0", [True, True, True]),
        ("friction.slides<1", [True, True, False]),
        ("friction.slides<=1", [True, True, True]),
    ],
)
def test_the_value_of_a_strict_limit_does_not_keep_it(text, kept):
    values = np.array([0.0, 0.5, 1.0])
    assert read_limit(text).holds(values).tolist() == kept
    violations = [read_requirement(text).violation({"friction.slides": x}) for x in values]
    assert [one == 0 for one in violations] == kept
    assert (read_requirement(text).excess(values) <= 0).tolist() == kept


@pytest.mark.slow
def test_points_within_limits_are_stable_and_keep_them_all(judged):
    phase, peak = (judged.metrics[key][:, 0] for key in ("margins.phase_deg", "effort.peak"))
    expected = (phase >= 50) & (peak <= 10) & (judged.metrics["stability.stable"] == 1)
    assert 0 < expected.sum() < len(expected)
    np.testing.assert_array_equal(judged.within, expected)
    (one,) = summarise(judged)
    assert one.within.count == expected.sum()
    failed = replace(judged, failed={int(np.flatnonzero(expected)[0]): "why"})
    assert failed.within.sum() == expected.sum() - 1


def test_what_never_settles_has_an_infinite_time(judged):
    times = judged.metrics["residual.settling_time"]
    assert np.isinf(times).any()
    assert np.isfinite(times).any()
    (one,) = summarise(judged)
    assert one.settled.count == np.isfinite(times).sum()
    assert np.isinf(one.quantiles["residual.settling_time"][-1])
    assert one.missing["residual.settling_time"] == 0


def test_ranks_share_the_variance_of_a_sum_as_its_parts_do():
    # y = x1 - 2 x2 of normal x: these explain 1/5 and 4/5 of its variance; ranks are Phi(y), and
    # the correlation of Phi of two normal numbers that correlate by r is 6/pi asin(r/2)
    rng = np.random.default_rng(0)
    x = rng.normal(size=(20000, 3))
    y = x[:, 0] - 2 * x[:, 1]
    for k, part in enumerate((0.2, 0.8, 0.0)):
        found = influence(x[:, k], y)
        rho = 6 / np.pi * np.arcsin(np.sqrt(part) / 2)
        assert abs(found.direction) == pytest.approx(rho, abs=0.02)
        # two y of the same x correlate by `part`, and so do their ranks, less in ten groups of x
        expected = 6 / np.pi * np.arcsin(part / 2)
        assert found.share == pytest.approx(expected, abs=0.02)
        assert (found.chance < 1e-6) == bool(part)
    assert influence(x[:, 0], y).direction > 0 > influence(x[:, 1], y).direction


def test_a_number_that_matters_both_ways_has_a_share_without_a_direction():
    x = np.linspace(-1, 1, 1001)
    found = influence(x, x**2)
    assert found.share > 0.9
    assert abs(found.direction) < 0.01


def test_influence_is_not_said_where_nothing_varies_or_little_is_known():
    x = np.arange(10.0)
    assert influence(x, np.ones(10)) is None
    assert influence(np.ones(10), x) is None
    assert influence(x, np.full(10, np.nan)) is None
    assert influence(x[:3], x[:3]) is None
    infinite = np.where(x < 5, np.inf, x)  # ranks 8 above 1 to 5: H of two groups of five
    ranks = np.where(x < 5, 8.0, x - 4)
    explained = 10 * 2.5**2 / ((ranks - 5.5) ** 2).sum()
    assert influence(x // 5, infinite).share == pytest.approx((9 * explained - 1) / 8)


def test_the_front_is_what_nothing_beats(judged):
    rng = np.random.default_rng(1)
    n = 300
    a, b = np.round(rng.random((2, n)), 2), rng.random(n)
    a[0, 0] = np.inf
    metrics = {
        "stability.stable": np.where(rng.random(n) < 0.9, 1.0, 0.0),
        "margins.phase_deg": a.T,
        "effort.energy": np.where(rng.random(n) < 0.05, np.nan, np.round(b, 2)),
    }
    many = replace(
        judged,
        values=np.zeros((n, 2)),
        design=np.zeros(n, dtype=int),
        metrics=metrics,
        limits=(),
        failed={},
        done=np.ones(n, dtype=bool),
    )
    cost = np.column_stack([-a.min(axis=0), metrics["effort.energy"]])
    good = np.flatnonzero((metrics["stability.stable"] == 1) & ~np.isnan(cost).any(axis=1))
    expected = {
        int(k)
        for k in good
        if not any((cost[j] <= cost[k]).all() and (cost[j] < cost[k]).any() for j in good)
    }
    front = pareto_front(many, ["margins.phase_deg", "effort.energy"])
    assert set(front.tolist()) == expected
    assert len(front) == len(expected) >= 3
    assert (np.diff(cost[front, 0]) >= 0).all()
    with pytest.raises(InputError, match=r"nearest: effort\.energy"):
        pareto_front(many, ["effort.energie"])
