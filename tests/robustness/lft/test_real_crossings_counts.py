"""How crossings are proved by counting: on made-up spectra, of which every crossing is known.

The spectrum is nothing but a list of errors at which eigenvalues become unstable or stable again.
"""

from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest

from flexctl.errors import ComputationError
from flexctl.robustness.lft import real_crossings as module
from flexctl.robustness.lft.crossings import SAME, RealCrossing
from flexctl.robustness.lft.real_crossings import stable_interval
from flexctl.robustness.lft.real_problem import Marginal
from flexctl.robustness.lft.uncertain_loop import Parameter, UncertainLoop


def crossing(delta, change=1, frequency=1.0):
    value = complex(0.0, frequency)
    return RealCrossing(
        delta=delta, eigenvalue=value, frequency=frequency, kind="crossing", change=change,
        residual=0.0,
    )  # fmt: skip


def spectrum(true, low=-np.inf, high=np.inf, candidates=(), at_start=0, marginal=(), doubt=0):
    """A problem whose unstable eigenvalues change as `true` says, counted from below."""

    def unstable(*deltas):
        counts = [at_start + sum(c.change for c in true if c.delta < x) for x in deltas]
        return [(count - doubt, count + doubt) for count in counts]

    return SimpleNamespace(
        unstable=unstable, low=low, high=high, candidates=np.array(candidates, float),
        marginal=marginal, loop=None, true=true,
    )  # fmt: skip


@pytest.fixture
def exact(monkeypatch):
    """Let candidates be verified by the made-up spectrum itself."""

    def verified(problem, deltas):
        return [c for c in problem.true for d in deltas if abs(c.delta - d) <= 1e-9 * abs(c.delta)]

    monkeypatch.setattr(module, "verified", verified)
    monkeypatch.setattr(module, "through_infinity", lambda _problem: [])
    monkeypatch.setattr(module, "real_candidates", lambda _loop, _base: np.zeros(0))
    monkeypatch.setattr(module, "at_zero", lambda _problem, item: crossing(0.0, item.name))
    return monkeypatch


INFINITE = np.inf
RANGES = [
    ([], -INFINITE, INFINITE),
    ([], -1.0, INFINITE),
    ([], -INFINITE, -2.0),
    ([], -0.5, 0.7),
    ([-0.3, 0.2, 0.4], -1.0, INFINITE),
    ([-0.3, 0.0, 0.4], -INFINITE, 2.0),
    ([3.0, 1e4], 0.0, 1e6),
    ([-7.0], -10.0, -5.0),
]


@pytest.mark.parametrize(("deltas", "low", "high"), RANGES)
def test_probes_stand_between_all_crossings_and_beyond(deltas, low, high):
    probes = module._probes([crossing(d) for d in deltas], low, high)

    assert probes == sorted(probes)
    assert not set(probes) & {*deltas, low, high}
    assert all(low < x < high for x in probes)
    assert (0.0 in probes) == (low < 0 < high and 0.0 not in deltas)
    for a, b in pairwise([low, *deltas, high]):
        inner = np.array([x for x in probes if a < x < b and x != 0])
        if np.isfinite(a) and np.isfinite(b):
            assert min(inner) - a == pytest.approx(0.02 * (b - a))
            assert b - max(inner) == pytest.approx(0.02 * (b - a))
            assert any(abs(x - (a + b) / 2) < 1e-9 * (b - a) for x in inner)
            continue
        ends = [end for end in (a, b) if np.isfinite(end)] or [0.0]
        away = np.sort(np.abs(inner - ends[0])) / (abs(ends[0]) or 1.0)
        assert away[0] == pytest.approx(0.02)
        assert away[-1] == pytest.approx(1000.0)
        assert len(away) >= 3


def test_an_endless_range_is_probed_on_both_sides():
    probes = np.array(module._probes([], -INFINITE, INFINITE))

    np.testing.assert_array_equal(probes, -probes[::-1])
    assert len(probes) == 9


def test_the_counts_of_an_error_are_the_least(exact):
    exact.setattr(module, "verified", lambda _problem, _deltas: [])
    steps = spectrum([crossing(0.3, change=9)], doubt=1, at_start=1)
    with pytest.raises(ComputationError, match=r"got 0 at .* and 9 at "):
        module._proved(steps, [], -1.0, 1.0, {})


def test_crossings_that_cannot_be_told_apart_are_not_probed_between():
    close = [crossing(1.0), crossing(1.0 + 1e-13, frequency=2.0)]
    negative = [crossing(-1.0 - 1e-13), crossing(-1.0)]

    assert not [x for x in module._probes(close, 0.0, 2.0) if 1.0 <= x <= 1.0 + 1e-13]
    assert not [x for x in module._probes(negative, -2.0, 0.0) if -1.0 - 1e-13 <= x <= -1.0]
    assert [x for x in module._probes([crossing(1.0), crossing(1.01)], 0.0, 2.0) if 1 < x < 1.01]


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        # (error, least, most); one eigenvalue becomes unstable at 1, two more at 3
        ([(0, 0, 0), (2, 1, 1), (4, 3, 3)], None),
        ([(0, 2, 2), (2, 3, 3), (4, 5, 5)], None),
        ([(0, 0, 0), (2, 0, 0), (4, 3, 3)], (0, 2)),
        ([(0, 0, 0), (2, 2, 2), (4, 3, 3)], (0, 2)),
        ([(0, 0, 0), (2, 1, 1), (4, 2, 2)], (2, 4)),
        ([(0, 0, 0), (2, 0, 1), (4, 2, 3)], None),
        ([(0, 0, 1), (2, 2, 2), (4, 3, 3)], (2, 4)),
        ([(0, 0, 2), (2, 1, 1), (4, 4, 5)], (2, 4)),
        ([(0, 1, 1), (2, 1, 2), (4, 4, 4)], None),
        ([(4, 3, 3), (2, 0, 0), (0, 0, 0)], (0, 2)),
        ([(0, 0, 0)], None),
        ([(0, 5, 4)], None),
    ],
)
def test_counts_contradict_crossings_where_no_start_explains_both(counts, expected):
    known = [crossing(1.0), crossing(3.0, change=2)]
    found = module._contradiction(known, {x: (least, most) for x, least, most in counts})

    assert found == expected


def test_a_crossing_on_a_probe_counts_from_there_on():
    # at the very error of a crossing the eigenvalue is on the axis, not beyond it
    assert module._contradiction([crossing(1.0)], {0.0: (0, 0), 1.0: (0, 0), 2.0: (1, 1)}) is None


@pytest.mark.parametrize(
    ("a", "b", "same"),
    [
        (crossing(0.5), crossing(0.5), True),
        (crossing(0.5), crossing(0.5 * (1 + 0.9 * SAME)), True),
        (crossing(0.5), crossing(0.5 * (1 + 2 * SAME)), False),
        (crossing(-0.5), crossing(-0.5 * (1 + 0.9 * SAME)), True),
        (crossing(0.5), crossing(-0.5), False),
        (crossing(0.0), crossing(0.0), False),  # at 0 every eigenvalue has its own
        (crossing(0.5, frequency=3.0), crossing(0.5, frequency=3.0 * (1 + 0.9 * SAME)), True),
        (crossing(0.5, frequency=3.0), crossing(0.5, frequency=3.0 * (1 + 2 * SAME)), False),
        (crossing(0.5, frequency=0.0), crossing(0.5, frequency=0.0), True),
        (crossing(0.5, frequency=0.0), crossing(0.5, frequency=1e-3), False),
        (crossing(0.5, frequency=np.inf), crossing(0.5, frequency=np.inf), True),
        (crossing(0.5, frequency=np.inf), crossing(0.5, frequency=3.0), False),
    ],
)
def test_a_crossing_found_twice_is_one(a, b, same):
    assert module._same(a, b) == same
    assert len(module._distinct([b, a])) == 2 - same


def test_distinct_crossings_ascend():
    found = module._distinct([crossing(2.0), crossing(-1.0), crossing(2.0), crossing(0.5)])

    assert [c.delta for c in found] == [-1.0, 0.5, 2.0]


TRUE = [crossing(-0.6, -1), crossing(0.3), crossing(0.9, -1), crossing(2.5, 2)]


@pytest.mark.usefixtures("exact")
def test_crossings_that_counts_confirm_are_kept():
    problem = spectrum(TRUE, at_start=1)
    found, counted = module._proved(problem, TRUE[::-1], -1.0, INFINITE, {})

    assert found == TRUE
    assert counted == len(module._probes(TRUE, -1.0, INFINITE))


@pytest.mark.usefixtures("exact")
def test_counts_that_are_known_are_not_taken_again():
    problem = spectrum(TRUE, at_start=1)
    probes = module._probes(TRUE, -1.0, INFINITE)
    _, counted = module._proved(problem, TRUE, -1.0, INFINITE, {probes[1]: (1, 1)})

    assert counted == len(probes) - 1


@pytest.mark.parametrize("missed", range(4))
@pytest.mark.usefixtures("exact")
def test_a_crossing_that_was_missed_is_found_by_its_count(missed):
    kept = [c for k, c in enumerate(TRUE) if k != missed]
    found, _ = module._proved(spectrum(TRUE, at_start=1), kept, -1.0, INFINITE, {})

    assert found == TRUE


def test_the_closer_search_sets_the_problem_up_between_the_probes(exact):
    bases = []

    def candidates(_loop, base):
        bases.append(base)
        return np.array([-3.0, 0.30000001, 0.7, 0.1, 5.0])

    verified_at = []
    exact.setattr(module, "real_candidates", candidates)
    exact.setattr(module, "verified", lambda _problem, deltas: verified_at.extend(deltas) or [])
    module._closer(spectrum(TRUE, at_start=1), 0.1, 0.7)

    assert bases[0].real == pytest.approx(0.4)
    assert 0 < abs(bases[0].imag) < 0.6  # nearer to the middle than the bracket is wide
    assert verified_at == [0.30000001, pytest.approx(0.3, rel=1e-12)]


def test_a_count_within_doubt_does_not_stop_the_bisection(exact):
    verified_at = []
    exact.setattr(module, "verified", lambda _problem, deltas: verified_at.extend(deltas) or [])
    steps = spectrum([crossing(0.3, change=3)], doubt=1)
    module._closer(steps, 0.1, 0.7)

    assert verified_at == [pytest.approx(0.3, rel=1e-12)]


def test_a_crossing_that_cannot_be_found_is_an_error_with_both_counts(exact):
    exact.setattr(module, "verified", lambda _problem, _deltas: [])
    with pytest.raises(ComputationError) as error:
        module._proved(spectrum(TRUE, at_start=1), TRUE[:1] + TRUE[2:], -1.0, INFINITE, {})
    text = str(error.value)
    numbers = [float(word) for word in text.replace(":", " ").replace(",", " ").split()
               if word.replace(".", "").replace("-", "").isdigit()]  # fmt: skip
    (a_count, a, b_count, b) = numbers[:4]

    assert (a_count, b_count) == (0, 1)
    assert a < 0.3 < b


@pytest.mark.parametrize(
    ("true", "low", "ends"),
    [
        (TRUE, -1.0, (-0.6, 0.3)),
        ([crossing(0.3)], -1.0, (-1.0, 0.3)),
        ([crossing(-0.6, -1)], -1.0, (-0.6, INFINITE)),
        ([], -INFINITE, (-INFINITE, INFINITE)),
        ([crossing(0.3), crossing(0.3001, -1)], -1.0, (-1.0, 0.3)),
        ([crossing(-0.3001), crossing(-0.3, -1)], -1.0, (-0.3, INFINITE)),
        ([crossing(-50.0, -2), crossing(1e3)], -INFINITE, (-50.0, 1e3)),
    ],
)
@pytest.mark.parametrize("false", [(), (-0.1, 0.05, 0.31, -0.59, 3.0)])
@pytest.mark.usefixtures("exact")
def test_the_interval_ends_at_the_nearest_crossing_on_either_side(true, low, ends, false):
    start = -sum(c.change for c in true if c.delta < 0)
    candidates = [*(c.delta for c in true), *false]
    problem = spectrum(true, low=low, at_start=start, candidates=candidates)

    for sign, end in zip((-1.0, 1.0), ends, strict=True):
        found, counted = module._end(problem, sign)
        reached = found.delta if found else (problem.low if sign < 0 else problem.high)
        assert reached == end
        assert counted > 0


@pytest.mark.parametrize("at", [0.2, 0.4, -0.2, -0.7])
def test_an_eigenvalue_that_passes_infinity_ends_the_interval_too(exact, at):
    beyond = crossing(at, 1 if at > 0 else -1, np.inf)
    true = sorted([*TRUE, beyond], key=lambda c: c.delta)
    start = -sum(c.change for c in true if c.delta < 0)
    problem = spectrum(true, -1.0, at_start=start, candidates=[c.delta for c in TRUE])
    exact.setattr(module, "through_infinity", lambda _problem: [beyond])

    assert module._end(problem, 1.0)[0].delta == min(0.3, at if at > 0 else 0.3)
    assert module._end(problem, -1.0)[0].delta == max(-0.6, at if at < 0 else -0.6)


@pytest.mark.usefixtures("exact")
def test_the_interval_is_counted_beyond_its_ends():
    # a candidate that verification misses: the count beyond the end it leaves contradicts
    true = [crossing(0.3), crossing(0.9, 1)]
    problem = spectrum(true, -1.0, candidates=[0.9])

    assert module._end(problem, 1.0)[0].delta == pytest.approx(0.3)


@pytest.mark.parametrize(
    ("end", "following", "far", "expected"),
    [
        (1.0, 5.0, 9.0, 1.02),
        (1.0, 1.01, 9.0, 1.005),
        (-1.0, -5.0, -9.0, -1.02),
        (-1.0, -1.01, -9.0, -1.005),
        (9.0, 9.0, 9.0, 9.0),
        (INFINITE, INFINITE, INFINITE, INFINITE),
        (1.0, INFINITE, INFINITE, 1.02),
    ],
)
def test_just_beyond_an_end_is_before_what_follows(end, following, far, expected):
    assert module._just_beyond(end, following, far) == pytest.approx(expected)


def leaving(name, rate, below, above):
    """An undamped eigenvalue at 0; `name` tells the crossings of several apart."""
    item = Marginal(value=1j, rate=complex(rate), below=below, above=above)
    return SimpleNamespace(name=name, value=item.value, rate=item.rate, below=below, above=above)


@pytest.mark.usefixtures("exact")
def test_of_several_undamped_eigenvalues_the_fastest_ends_the_interval():
    up = [leaving(1, 0.1, False, True), leaving(2, 0.7, False, True), leaving(3, 0.3, False, True)]
    down = [leaving(4, -0.2, True, False), leaving(5, -0.9, True, False)]
    problem = spectrum([], marginal=(*up, *down))

    assert module._end(problem, 1.0) == (crossing(0.0, 2), 0)
    assert module._end(problem, -1.0) == (crossing(0.0, 5), 0)


@pytest.mark.usefixtures("exact")
def test_an_undamped_eigenvalue_ends_the_interval_on_its_own_side_only():
    problem = spectrum([], marginal=(leaving(1, 0.1, False, True),))

    assert module._end(problem, 1.0)[0] is not None
    assert module._end(problem, -1.0)[0] is None


def two_channels():
    """Three motions of which the error drives two, by a channel each."""
    A = np.diag([-1.0, -2.0, -5.0])
    U, V = np.eye(3)[:, :2], np.eye(3)[:2]
    return UncertainLoop(
        A=A, U=U, V=V, D=np.zeros((2, 2)),
        parameters=(Parameter(name="stiffness", size=2, lowest=-np.inf),),
        states=("a", "b", "c"), sample_time=None,
    )  # fmt: skip


def test_the_evidence_says_how_large_the_exact_problem_was_and_how_often_it_was_counted():
    found = stable_interval(two_channels())  # -1 + delta and -2 + delta: lost at 1

    assert found.upper == pytest.approx(1.0)
    assert found.lower == -INFINITE
    assert found.at_lower is None
    assert found.unknowns == 2 * 3  # channels times states
    assert found.counted > 6
    assert not len(found.fixed)
