"""The guardian map in parts: matrices against sums of eigenvalues, counts on made-up ones."""

from dataclasses import replace
from itertools import combinations
from types import SimpleNamespace

import numpy as np
import pytest

from flexctl.errors import ComputationError, DesignError, InputError
from flexctl.robustness.lft.crossings import FLAT, ROUND_OFF, Crossing
from flexctl.robustness.time_scales import guardian as module
from flexctl.robustness.time_scales import guardian_map
from flexctl.robustness.time_scales.guardian import (
    bisect_bound,
    find_crossings,
    obstacle,
    smallest_bound,
    stable_ranges,
)
from flexctl.robustness.time_scales.guardian_map import (
    bialternate,
    candidates,
    polynomial_roots,
    problem_size,
    reference,
    separated_roots,
    sum_map,
)
from flexctl.robustness.time_scales.pencil import Pencil, power_sum, separated


def crossing(sigma, change=2):
    return Crossing(sigma=sigma, frequency=1.0, kind="crossing", change=change, residual=0.0)


def oscillator(*polynomial):
    """x'' - (p_0 + p_1 sigma + ...) x' + x = 0: two unstable eigenvalues wherever p > 0."""
    still, rate = np.array([[0.0, 1.0], [-1.0, 0.0]]), np.diag([0.0, 1.0])
    parts = (still + polynomial[0] * rate, *(p * rate for p in polynomial[1:]))
    return Pencil(slow=2, E=(np.eye(2),), A=parts)


def loop_of(slow, fast):
    """Uncoupled subsystems with these real eigenvalues."""
    return separated(np.diag([*slow, *fast]).astype(float), slow=len(slow))


def coupled(n_s, n_f, seed):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(n_s + n_f, n_s + n_f)) - 2.0 * np.eye(n_s + n_f)
    return separated(A, slow=n_s)


# values of sigma at which eigenvalues are counted


def test_counts_are_taken_before_between_and_beyond_crossings():
    at = [0.5, 2.0, 2.0 * (1 + 0.5 * FLAT), 18.0]
    probes = module._probes(oscillator(-1.0), [crossing(s) for s in at])

    assert probes[0] == 0.25
    assert probes[1] == pytest.approx(1.0)
    assert probes[2] == pytest.approx(6.0, rel=1e-4)
    assert probes[3:] == [36.0, 540.0, 18000.0]
    apart = module._probes(oscillator(-1.0), [crossing(2.0), crossing(2.0 * (1 + 3 * FLAT))])
    assert len(apart) == 5


def test_without_a_crossing_counts_are_taken_about_the_reference():
    pencil = loop_of([-1.0, -4.0], [-10.0, -1000.0])
    probes = np.array(module._probes(pencil, []))

    assert probes == pytest.approx(50 * np.array([0.03, 1.0, 30.0]))


@pytest.mark.parametrize(
    ("slow", "fast", "expected"),
    [
        ([-1.0, -4.0], [-10.0, -1000.0], 50.0),
        ([-2.0], [-3.0], 1.5),
        ([2.0], [-3.0], 1.5),
        ([0.0, -1.0], [-3.0], 1.0),
        ([-1.0], [], 1.0),
    ],
)
def test_the_reference_is_the_ratio_of_geometric_means(slow, fast, expected):
    assert reference(loop_of(slow, fast)) == pytest.approx(expected)


def test_a_loop_without_a_slow_subsystem_has_no_reference():
    assert reference(separated(np.array([[-1.0, 1.0], [1.0, 0.0]]), slow=1)) == 1.0
    assert reference(loop_of([-1.0], [0.0, -3.0])) == 1.0


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [(0.0, 4.0, 2.0), (2.0, 8.0, 4.0), (3.0, np.inf, 6.0), (0.0, np.inf, 50.0)],
)
def test_one_value_stands_for_all_between_two_crossings(low, high, expected):
    pencil = loop_of([-1.0, -4.0], [-10.0, -1000.0])
    assert module._inside(pencil, low, high) == pytest.approx(expected)


# counts that agree or disagree with crossings


@pytest.fixture
def spectra(monkeypatch):
    """spectra(counts): loops whose unstable eigenvalues are counts(sigma), of five.

    It returns the list of all sigma whose spectra were computed.
    """

    def use(counts, slow=None, fast=None, at=None):
        computed = []

        def values(_pencil, sigma):
            computed.append(sigma)
            if at and sigma in at:
                return np.array(at[sigma], complex)
            n = counts(sigma)
            return np.array([1.0 + 1j] * n + [-1.0 + 1j] * (5 - n))

        monkeypatch.setattr(module, "poles", values)
        limits = values(None, 0.0)
        monkeypatch.setattr(module, "slow_poles", lambda _p: limits[:2] if slow is None else slow)
        monkeypatch.setattr(module, "fast_poles", lambda _p: limits[2:] if fast is None else fast)
        computed.clear()
        return computed

    return use


def steps(*at):
    """Count that grows by `change` beyond sigma, from `first` on."""
    first, *pairs = at
    return lambda sigma: first + sum(change for s, change in pairs if s < sigma)


PROBES = [0.5, 2.0, 5.0, 20.0]


@pytest.mark.parametrize("first", [0, 1])
def test_counts_that_agree_with_the_crossings_are_accepted_at_all_probes(spectra, first):
    computed = spectra(steps(first, (1.0, 2), (3.0, -1)))
    module._count_unstable(None, [crossing(1.0, 2), crossing(3.0, -1)], PROBES)
    assert computed == PROBES  # silent, but not for want of counting


@pytest.mark.parametrize("probe", PROBES)
def test_one_deviating_count_is_an_error_at_every_probe(spectra, probe):
    agreeing = steps(1, (1.0, 2), (3.0, -1))
    spectra(lambda sigma: agreeing(sigma) + (sigma == probe))
    with pytest.raises(ComputationError, match=rf"at sigma = {probe:g}, got"):
        module._count_unstable(None, [crossing(1.0, 2), crossing(3.0, -1)], PROBES)


@pytest.mark.parametrize(
    ("known", "at", "expected", "got"),
    [
        ([crossing(1.0, 2)], 5.0, 2, 1),
        ([crossing(3.0, -1)], 2.0, 0, 2),
        ([crossing(1.0, 1), crossing(3.0, -1)], 2.0, 1, 2),
        ([crossing(1.0, -2), crossing(3.0, -1)], 2.0, -2, 2),
        ([crossing(1.0, 2), crossing(3.0, -1), crossing(7.0, 1)], 20.0, 2, 1),
    ],
)
def test_a_count_that_contradicts_is_an_error_with_its_numbers(spectra, known, at, expected, got):
    spectra(steps(0, (1.0, 2), (3.0, -1)))
    with pytest.raises(ComputationError) as error:
        module._count_unstable(None, known, PROBES)
    numbers = [w.strip(":,") for w in str(error.value).split() if any(c.isdigit() for c in w)]
    assert [float(x) for x in numbers[:3]] == [expected, at, got]


def test_a_contradiction_before_the_first_probe_is_seen_from_the_limits(spectra):
    spectra(lambda sigma: 2 if sigma else 0)
    with pytest.raises(ComputationError, match=r"= 0\.5, got 2"):
        module._count_unstable(None, [], PROBES)


@pytest.mark.parametrize("slow", [[np.nan, np.nan], [1j, -1j]])
def test_limits_that_do_not_exist_or_lie_on_the_axis_are_not_counted(spectra, slow):
    computed = spectra(lambda _sigma: 2, slow=np.array(slow, complex))
    module._count_unstable(None, [], PROBES)  # two unstable everywhere but in these limits
    assert computed == PROBES


def test_limits_off_the_axis_are_counted(spectra):
    spectra(lambda _sigma: 2, slow=np.array([-0.1 + 1j, -0.1 - 1j]))
    with pytest.raises(ComputationError, match=r"expected 0 .* = 0\.5, got 2"):
        module._count_unstable(None, [], PROBES)


def test_a_spectrum_on_the_axis_is_not_counted(spectra):
    spectra(steps(0), at={5.0: [1e-12 + 1j, -1.0, -1.0, -1.0, 3.0]})
    module._count_unstable(None, [], PROBES)
    spectra(steps(0), at={5.0: [1e-6 + 1j, -1.0, -1.0, -1.0, 3.0]})
    with pytest.raises(ComputationError, match=r"= 5, got 2"):
        module._count_unstable(None, [], PROBES)


def test_only_a_bound_is_counted_to_it_and_just_beyond(monkeypatch):
    pencil = oscillator(-2.5, 3.5, -1.0)  # -(sigma - 1)(sigma - 2.5): unstable between
    both = candidates(pencil)
    assert both == pytest.approx([1, 2.5])
    monkeypatch.setattr(module, "candidates", lambda _p: both[:1])
    assert smallest_bound(pencil).sigma == pytest.approx(1.0)
    with pytest.raises(ComputationError):
        find_crossings(pencil)
    monkeypatch.setattr(module, "candidates", lambda _p: both[1:])
    with pytest.raises(ComputationError):
        smallest_bound(pencil)


def test_a_loop_of_which_nothing_is_found_is_counted_too(monkeypatch):
    monkeypatch.setattr(module, "candidates", lambda _p: np.zeros(0))
    with pytest.raises(ComputationError):
        smallest_bound(oscillator(-1.3, 1.0))


def test_as_many_unknowns_as_are_taken_are_taken(monkeypatch):
    pencil = coupled(2, 3, 1)
    monkeypatch.setattr(module, "LARGEST", problem_size(pencil))
    find_crossings(pencil)
    monkeypatch.setattr(module, "LARGEST", problem_size(pencil) - 1)
    with pytest.raises(InputError, match=f"{problem_size(pencil)}"):
        find_crossings(pencil)


def test_stable_ranges_begin_at_their_start():
    pencil = oscillator(-6.0, 11.0, -6.0, 1.0)  # unstable in (1, 2) and beyond 3
    for start, expected in [(0.0, [(0, 1), (2, 3)]), (1.5, [(2, 3)]), (2.5, [(2.5, 3)]), (4.0, [])]:
        found = stable_ranges(pencil, start)
        assert [end for ab in found for end in ab] == pytest.approx(
            [x for ab in expected for x in ab]
        )


# bisection


def test_bisection_brackets_the_first_loss():
    pencil = oscillator(-6.0, 11.0, -6.0, 1.0)
    found = bisect_bound(pencil, 0.1, 10.0)
    assert found.sigma == pytest.approx(1.0, rel=1e-9)
    assert found.change == 2
    assert bisect_bound(pencil, 0.1, 0.999) is None
    assert bisect_bound(pencil, 2.1, 2.9) is None
    assert bisect_bound(pencil, 2.1, 3.1).sigma == pytest.approx(3.0, rel=1e-9)
    assert bisect_bound(pencil, 0.1, 10.0, per_decade=1).sigma == pytest.approx(3.0, rel=1e-9)
    assert bisect_bound(pencil, 0.9, 1.1, per_decade=1).sigma == pytest.approx(1.0, rel=1e-9)


def test_bisection_takes_its_points_by_the_decade():
    """Of 50 a decade a band of 5 % is hit, wherever it lies."""
    for at in (0.31, 1.7, 46.0):
        band = oscillator(-(at**2) * 1.05, at * 2.05, -1.0)  # unstable in (at, 1.05 at)
        assert bisect_bound(band, 0.01, 1000.0).sigma == pytest.approx(at, rel=1e-9)


@pytest.mark.parametrize("per_decade", [0, -1])
def test_bisection_needs_a_point(per_decade):
    with pytest.raises(InputError):
        bisect_bound(oscillator(-1.0, 1.0), 0.1, 10.0, per_decade=per_decade)


@pytest.mark.parametrize("p", [0.0, 1.0])
def test_bisection_starts_where_the_loop_is_stable_not_marginal(p):
    with pytest.raises(DesignError, match="low"):
        bisect_bound(oscillator(p, 1.0), 1e-12, 10.0)


def test_stability_lost_without_a_crossing_is_an_error(monkeypatch):
    monkeypatch.setattr(module, "verify", lambda _pencil, _sigmas: ())
    with pytest.raises(ComputationError, match="sigma = 1,"):
        bisect_bound(oscillator(-1.0, 1.0), 0.1, 10.0)


def test_of_two_crossings_next_to_the_bracket_the_nearer_is_taken(monkeypatch):
    near = [crossing(1.1), crossing(0.99), crossing(0.5)]
    monkeypatch.setattr(module, "verify", lambda _pencil, _sigmas: near)
    assert module._narrow(oscillator(-1.0, 1.0), 0.1, 10.0).sigma == 0.99


# what stands in the way


@pytest.mark.parametrize(
    ("slow", "fast", "words"),
    [
        ([-1.0], [-3.0], None),
        ([-1.0], [], None),
        ([0.5, -1.0], [-3.0, 2.0], ("unstable", "fast", 2.0)),
        ([0.5, -1.0], [-3.0, -2.0], ("unstable", "slow", 0.5)),
        ([-1.0, 0.0], [-3.0], ("marginal", "slow", 0.0)),
    ],
)
def test_the_subsystem_in_the_way_is_named_with_its_worst_eigenvalue(slow, fast, words):
    said = obstacle(loop_of(slow, fast))
    if words is None:
        assert said is None
        return
    state, which, value = words
    assert f"{state} {which}" in said
    assert float(said.split()[-1]) == value


def test_a_swinging_eigenvalue_is_shown_with_both_signs():
    A = np.zeros((4, 4))
    A[:2, :2], A[2:, 2:] = [[0.125, 3.0], [-3.0, 0.125]], -np.eye(2)
    assert obstacle(separated(A, slow=2)).endswith("0.125 +- 3j")


def on_axis_at(values, monkeypatch):
    """Let the loop have these spectra at the three sigma at which it is judged."""
    spectra_in_order = iter(values)
    monkeypatch.setattr(
        module, "poles", lambda _pencil, _sigma: np.array(next(spectra_in_order), complex)
    )
    return module.everywhere(loop_of([-1.0], [-1.0]))


AXIS, OFF, PAIR = [2j, -2j, -1.0], [-1.0, -2.0, -3.0], [1.5, -1.5, -4.0]


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ([AXIS, AXIS, AXIS], "2j"),
        ([AXIS, AXIS, OFF], None),
        ([OFF, AXIS, AXIS], None),
        ([[5j, -5j, -1.0], [3j, -3j, 7j, -7j], AXIS], "7j"),
        ([PAIR, PAIR, PAIR], "add up to zero"),
        ([PAIR, OFF, PAIR], None),
        ([OFF, OFF, OFF], None),
    ],
)
def test_what_stands_on_the_axis_for_every_sigma_is_said(values, words, monkeypatch):
    said = on_axis_at(values, monkeypatch)
    assert (said is None) == (words is None)
    assert words is None or words in said


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([-0.9e-9 + 1j, -1.0], [True, False]),
        ([-2e-9 + 1j, -1.0], [False, False]),
        ([2e-9 + 1j, -1.0], [False, False]),
        ([-0.9e-9 * 30 + 30j, -1.0], [True, False]),
        ([-0.5 * ROUND_OFF * 1e6, -1e6], [True, False]),
        ([-2 * ROUND_OFF * 1e6, -1e6], [False, False]),
    ],
)
def test_the_axis_is_as_wide_as_round_off(values, expected):
    assert module._on_axis(np.array(values, complex)).tolist() == expected


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1.0, -1.0, 5.0], True), ([1.0, -1.0 - 0.9e-9], True), ([1.0, -1.0 - 3e-9], False),
        ([1j, -1j], True), ([1 + 1j, 1 - 1j], False), ([2 + 1j, -2 - 1j, 7.0], True),
        ([1.0], False),
        ([0.0, -3.0], False), ([1.0, -1.0 - 0.5e6 * ROUND_OFF, 1e6], True),
    ],
)  # fmt: skip
def test_eigenvalues_that_add_up_to_zero_are_seen(values, expected):
    assert module._opposite(np.array(values, complex)) is expected


# the map


def random_pair(n, seed):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, n)), rng.normal(size=(n, n)) + 3 * np.eye(n)


@pytest.mark.parametrize("n", [2, 3, 5])
def test_eigenvalues_of_the_map_are_the_sums_of_two(n):
    A, E = random_pair(n, n)
    values = np.linalg.eigvals(np.linalg.solve(E, A))
    sums = [a + b for a, b in combinations(values, 2)]
    found = np.linalg.eigvals(np.linalg.solve(bialternate(E, E) / 2, bialternate(A, E)))

    found, sums = (np.sort_complex(np.round(x, 8)) for x in (found, sums))
    np.testing.assert_allclose(found, sums, rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("sigma", [0.3, 2.0])
def test_the_map_of_polynomials_is_the_map_at_every_sigma(sigma):
    rng = np.random.default_rng(4)
    pencil = separated(*(rng.normal(size=(5, 5)) for _ in range(1)), 2, rng.normal(size=(5, 5)))
    i, _ = np.triu_indices(5, 1)
    expected = bialternate(power_sum(pencil.A, sigma), power_sum(pencil.E, sigma))
    expected[i >= 2] /= sigma
    found = power_sum(tuple(sum_map(pencil)), sigma)

    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("n_s", "n_f"), [(1, 1), (2, 1), (1, 3), (3, 4)])
def test_the_reduced_problem_has_the_roots_of_the_whole(n_s, n_f):
    pencil = coupled(n_s, n_f, 7)
    reduced = separated_roots(pencil)
    whole = polynomial_roots(sum_map(pencil))

    assert len(reduced) == n_s * n_f == problem_size(pencil)
    np.testing.assert_allclose(
        np.sort_complex(reduced[np.isfinite(reduced)]), np.sort_complex(whole), rtol=1e-6
    )


def test_roots_are_those_of_the_rows_whatever_they_are_mixed_with():
    rng = np.random.default_rng(2)
    rows = np.zeros((4, 5, 5))  # by power, of degree 3, 1, 0, 2, 0
    rows[:, 0, 0] = [-6.0, 11.0, -6.0, 1.0]
    rows[:2, 1, 1] = [8.0, -2.0]
    rows[0, 2, 2], rows[0, 4, 4] = 5.0, -3.0
    rows[:3, 3, 3] = [25.0, 0.0, 1.0]
    right = rng.normal(size=(5, 5))
    found = np.sort_complex(polynomial_roots(rows @ right))

    expected = np.sort_complex(np.array([1, 2, 3, 4, 5j, -5j], complex))
    np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-8)
    scaled = np.array([1e-8, 1e6, 1.0, 1e3, 1e-4])[None, :, None] * (rows @ right)
    np.testing.assert_allclose(np.sort_complex(polynomial_roots(scaled)), expected, atol=1e-8)


def test_rows_that_are_free_of_sigma_have_no_roots():
    rng = np.random.default_rng(3)
    assert not len(polynomial_roots(rng.normal(size=(1, 3, 3))))
    assert not len(
        polynomial_roots(np.concatenate([rng.normal(size=(1, 3, 3)), np.zeros((2, 3, 3))]))
    )


def test_roots_at_zero_and_a_singular_end_are_taken_by_another_way():
    # P_0 singular: sigma = 0 is a root, beside 2 and 3
    rng = np.random.default_rng(5)
    P = np.zeros((3, 2, 2))
    P[:, 0, 0], P[:, 1, 1] = [0.0, -2.0, 1.0], [-3.0, 1.0, 0.0]
    found = polynomial_roots(P @ rng.normal(size=(2, 2)))
    np.testing.assert_allclose(np.sort(found.real), [0, 2, 3], atol=1e-9)


@pytest.mark.parametrize(
    ("values", "expected"), [([1.0, -1.1, 3.0], 0.1 / 3), ([2j, -2j], 0.0), ([5.0], np.inf)]
)
def test_the_smallest_sum_is_in_units_of_the_largest_eigenvalue(values, expected):
    assert guardian_map._smallest_sum(np.array(values, complex)) == pytest.approx(expected)


def polynomial_loop(degree_E, degree_A, n_s=2, n_f=2):
    rng = np.random.default_rng(6)
    n = n_s + n_f
    pencil = coupled(n_s, n_f, 8)
    more_A = tuple(rng.normal(size=(n, n)) for _ in range(degree_A))
    more_E = tuple(rng.normal(size=(n, n)) for _ in range(degree_E - 1))
    return replace(pencil, A=pencil.A + more_A, E=pencil.E + more_E)


@pytest.mark.parametrize(("degree_E", "degree_A"), [(1, 1), (1, 2), (2, 0), (2, 1)])
def test_the_size_of_the_problem_is_that_of_its_matrices(degree_E, degree_A):
    pencil = polynomial_loop(degree_E, degree_A)
    matrix, _, _ = guardian_map._row_companion(sum_map(pencil))

    assert len(matrix) <= problem_size(pencil) <= len(matrix) + 1
    padded = replace(pencil, A=(*pencil.A, np.zeros((4, 4))))  # nothing is added by zeros
    assert problem_size(padded) == problem_size(pencil)


def test_where_a_subsystem_alone_has_an_undamped_pair_the_whole_map_is_taken():
    A = coupled(2, 2, 9).A[0].copy()
    A[2:, 2:] = [[0.0, 3.0], [-3.0, 0.0]]
    assert problem_size(separated(A, slow=2)) > 4
    A[2:, 2:] = [[0.0, 3.0], [-3.0, -1e-6]]
    assert problem_size(separated(A, slow=2)) == 4
    A[2:, 2:] = [[1.0, 1.0], [1.0, 1.0]]
    assert problem_size(separated(A, slow=2)) > 4


def test_candidates_are_real_positive_and_ascend():
    pencil = oscillator(-6.0, 11.0, -6.0, 1.0)
    assert candidates(pencil) == pytest.approx([1.0, 2.0, 3.0])
    assert len(candidates(oscillator(5.0, -4.0, 1.0))) == 0  # 2 +- 1j
    assert len(candidates(oscillator(2.0, 3.0, 1.0))) == 0  # -1 and -2
    hardly = oscillator(4.0 * (1 + 0.5e-6), -4.0, 1.0)  # 2 (1 +- 0.7e-3 j)
    assert len(candidates(hardly)) == 1
    apart = oscillator(4.0 * (1 + 4e-6), -4.0, 1.0)  # 2 (1 +- 2e-3 j)
    assert len(candidates(apart)) == 0


def test_an_eigenvalue_that_passes_zero_is_a_candidate_too():
    pencil = Pencil(slow=1, E=(np.eye(1),), A=(-3.0 * np.eye(1), np.eye(1)))  # sigma - 3
    assert candidates(pencil) == pytest.approx([3.0])
    found = find_crossings(pencil)
    assert [(c.sigma, c.change, c.frequency) for c in found] == [(pytest.approx(3.0), 1, 0.0)]


def test_lyapunov_equations_are_solved():
    rng = np.random.default_rng(1)
    S = np.triu(rng.normal(size=(4, 4))) - 3 * np.eye(4)
    right = rng.normal(size=(4, 4))
    X = guardian_map._lyapunov(S, right)
    np.testing.assert_allclose(S @ X + X @ S.T, right, atol=1e-12)


def test_a_loop_in_other_units_is_the_same_loop():
    pencil = coupled(2, 3, 11)
    scaled = guardian_map.rescale(pencil)
    unit = reference(pencil)
    for s in (0.2, 1.0, 7.0):
        a, b = (
            np.sort_complex(np.linalg.eigvals(p.matrix(x)))
            for p, x in ((scaled, s), (pencil, unit * s))
        )
        np.testing.assert_allclose(a, b, rtol=1e-9)
    sizes = SimpleNamespace(rows=np.abs(scaled.matrix(1.0)).sum(axis=1))
    assert sizes.rows.max() <= 1.01 * np.abs(pencil.matrix(unit)).sum(axis=1).max()
