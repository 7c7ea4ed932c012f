"""Bounds of real mu: loops whose region of stability is known, and samples that know no bound."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
import slycot

from flexctl.errors import InputError
from flexctl.robustness.lft import frequency_cover
from flexctl.robustness.lft.deadline import Deadline
from flexctl.robustness.lft.frequency_cover import (
    cover_axis,
    level_frequencies,
    level_of_one_scaling,
    proven_parts,
)
from flexctl.robustness.lft.mu_bounds import find_mu_bounds
from flexctl.robustness.lft.mu_upper_bound import scaled_norm, tight_bound
from flexctl.robustness.lft.scalings import Block, Scalings, find_scalings
from flexctl.robustness.lft.uncertain_loop import Parameter, UncertainLoop, frequency_response
from flexctl.robustness.lft.worst_case import find_worst_case


def uncertain(A, U, V, sizes, D=None, lowest=-np.inf, sample_time=None):
    A, U, V = (np.array(X, dtype=float) for X in (A, U, V))
    return UncertainLoop(
        A=A,
        U=U,
        V=V,
        D=np.zeros((sum(sizes),) * 2) if D is None else D,
        parameters=tuple(
            Parameter(name=f"error {i}", size=size, lowest=lowest) for i, size in enumerate(sizes)
        ),
        states=tuple(f"x{i}" for i in range(len(A))),
        sample_time=sample_time,
    )


def oscillator(damping, by_stiffness, by_damping):
    """x'' + 2 z (1 + a d2) x' + (1 + b d1) x = 0: stable where 1 + b d1 > 0 and 1 + a d2 > 0."""
    return uncertain(
        [[0, 1], [-1, -2 * damping]],
        [[0, 0], [-1, -1]],
        [[by_stiffness, 0], [0, 2 * damping * by_damping]],
        (1, 1),
    )


def damped_only(damping, by_damping):
    """x'' + 2 z (1 + a d) x' + x = 0: real mu is |a| at w = 1, and 0 at every other frequency."""
    return uncertain(
        [[0, 1], [-1, -2 * damping]], [[0], [-1]], [[0, 2 * damping * by_damping]], (1,)
    )


def turned(sizes):
    """A = [[-1, d1], [-d2, -1]]: never unstable for d1 = d2, from d1 = -d2 = 1 on otherwise."""
    return uncertain(-np.eye(2), [[1, 0], [0, -1]], [[0, 1], [1, 0]], sizes)


def random_loop(seed, n=6, sizes=(1, 1)):
    """Stable random loop with a lightly damped mode, and with a direct term."""
    rng = np.random.default_rng(seed)
    r = sum(sizes)
    A = rng.normal(size=(n, n))
    A[:2, :2] += [[0, 5], [-5, 0]]
    A -= (np.linalg.eigvals(A).real.max() + 0.1) * np.eye(n)
    U, V = rng.normal(size=(n, r)), rng.normal(size=(r, n))
    return uncertain(A, U, V, sizes, D=0.1 * rng.normal(size=(r, r)))


def growth(loop, deltas):
    return np.array([loop.poles(delta).real.max() for delta in deltas])


def blocks_of(loop):
    return tuple(Block(first=i, size=1) for i in range(len(loop.owner)))


def bound(blocks):
    return lambda M, floor: tight_bound(M, blocks, scaled_norm(M, floor), floor)


def test_one_error_has_its_exact_margin():
    found = find_mu_bounds(uncertain([[-3.0]], [[1.5]], [[1.0]], (1,)))

    assert found.guaranteed_fraction == pytest.approx(2.0, rel=1e-12)
    assert found.proven


@pytest.mark.slow_but("0.5-2.0-0.01", "0.5-2.0-0.0001", "0.5-2.0-0.3")
@pytest.mark.parametrize("damping", [0.3, 1e-2, 1e-4])
@pytest.mark.parametrize(("by_stiffness", "by_damping"), [(2.0, 0.5), (0.5, 2.0), (-1.6, 1.25)])
def test_stiffness_and_damping_of_an_oscillator(damping, by_stiffness, by_damping):
    exact = 1 / max(abs(by_stiffness), abs(by_damping))
    found = find_mu_bounds(oscillator(damping, by_stiffness, by_damping))

    assert found.proven
    assert exact / 1.015 < found.guaranteed_fraction <= exact
    assert found.worst_case.gamma == pytest.approx(exact, rel=1e-9)


@pytest.mark.parametrize("seed", [1, 2])
def test_without_a_proof_the_bound_is_that_of_the_grid(seed):
    loop = random_loop(seed, sizes=(2, 1))
    proven, found = find_mu_bounds(loop), find_mu_bounds(loop, prove=False)

    assert (found.proven, found.cover, found.stopped) == (False, None, "")
    assert found.not_proven == ((0.0, np.inf),)
    assert found.mu_peak == found.mu.max() == pytest.approx(1 / found.guaranteed_fraction)
    assert found.frequency == found.grid[found.mu.argmax()]
    assert found.guaranteed_fraction == pytest.approx(proven.guaranteed_fraction, rel=0.02)
    assert found.worst_case.gamma == proven.worst_case.gamma
    assert "rests on a grid" in found.notes[-1]


def test_a_repeated_error_is_proven_as_one_where_independent_ones_destabilise():
    assert find_mu_bounds(turned((2,))).guaranteed_fraction > 50
    assert find_mu_bounds(turned((1, 1))).guaranteed_fraction == pytest.approx(1.0, rel=0.015)


@pytest.mark.slow  # takes long
@pytest.mark.parametrize("seed", range(3))
def test_separable_channels_beyond_four_are_bounded_as_independent_ones(seed):
    together, apart = (random_loop(seed, sizes=sizes) for sizes in ((5, 1), (1,) * 6))
    many, one = together.parameters
    found = find_mu_bounds(replace(together, parameters=(replace(many, separable=5), one)))

    independent = find_mu_bounds(apart).guaranteed_fraction
    assert found.proven
    assert found.guaranteed_fraction == pytest.approx(independent, rel=0.03)
    assert found.guaranteed_fraction < 1.02 * find_mu_bounds(together).guaranteed_fraction
    assert any(
        "5 of its channels are bounded as independent errors" in note for note in found.notes
    )


@pytest.mark.slow_but("4")
@pytest.mark.parametrize("seed", range(5))
def test_bounds_enclose_the_margin_over_a_grid_of_directions(seed):
    loop = random_loop(seed)
    found = find_mu_bounds(loop)
    along = np.linspace(-1, 1, 201)[:, None]
    edge = np.vstack([np.hstack([along, sign * np.ones_like(along)]) for sign in (-1, 1)])
    edge = np.vstack([edge, edge[:, ::-1]])
    inside = found.guaranteed_fraction * np.linspace(0.05, 1.0, 10)

    assert found.proven
    assert (growth(loop, edge * inside[-1]) < 0).all()
    assert (growth(loop, (d * size for d, size in itertools.product(edge[::10], inside))) < 0).all()
    assert (growth(loop, edge * found.worst_case.gamma * 0.995) < 0).all()
    assert found.guaranteed_fraction < found.worst_case.gamma < 1.1 * found.guaranteed_fraction


@pytest.mark.parametrize(("seed", "sizes"), [(11, (1, 1, 1)), (12, (2, 1)), (13, (1, 1, 2))])
@pytest.mark.slow_but("11-*")
def test_no_sample_lies_between_the_fraction_and_zero_nor_below_the_worst_case(seed, sizes):
    loop = random_loop(seed, sizes=sizes)
    found = find_mu_bounds(loop)
    samples = np.random.default_rng(seed).uniform(-1, 1, size=(10_000, len(sizes)))
    samples *= 1.5 * found.worst_case.gamma
    unstable = np.abs(samples[growth(loop, samples) >= 0]).max(axis=1)

    assert len(unstable) > 100
    assert unstable.min() > found.worst_case.gamma > found.guaranteed_fraction
    assert found.worst_case.verified


@pytest.mark.slow_but("1e-05")
@pytest.mark.parametrize("damping", [1e-2, 1e-5])
def test_a_peak_at_one_frequency_alone_is_caught_without_a_hint(damping):
    # between grid points mu is zero: no grid that misses w = 1 can see anything
    response = frequency_response(damped_only(damping, 2.0))
    real = (Block(first=0, size=1),)
    M = response(np.linspace(0.1, 3.0, 200))
    on_grid = max(bound(real)(m, 1e-6) for m in M)
    cover = cover_axis(response, real, start=(0.01, 0.0), edges=np.zeros(0))

    assert on_grid < 0.1
    assert not cover.missing
    assert 2.0 <= cover.level < 2.05
    assert cover.at == pytest.approx(1.0, rel=1e-5)


def test_the_cover_leaves_no_gap():
    response = frequency_response(random_loop(3, n=14, sizes=(1, 1, 1)))
    real = blocks_of(random_loop(3, n=14, sizes=(1, 1, 1)))
    cover = cover_axis(response, real, start=(0.1, 0.0), edges=np.zeros(0))
    ends = np.array(cover.proven)

    assert ends[0, 0] == 0
    assert np.isinf(ends[-1, 1])
    assert (ends[1:, 0] <= ends[:-1, 1]).all()


def test_no_frequency_within_a_proven_band_exceeds_the_level():
    response = frequency_response(random_loop(4, n=14, sizes=(1, 1, 1)))
    real = blocks_of(random_loop(4, n=14, sizes=(1, 1, 1)))
    cover = cover_axis(response, real, start=(0.1, 0.0), edges=np.zeros(0))
    worst = [
        scalings.depth(response(np.linspace(low, min(high, 1e3 + 2 * low), 2001)) / cover.level)
        for (low, high), scalings in zip(cover.proven, cover.scalings, strict=True)
    ]

    assert np.max(worst) < 0


def test_what_the_budget_leaves_is_said(monkeypatch):
    monkeypatch.setattr(frequency_cover, "_BUDGET", 1)
    found = find_mu_bounds(random_loop(2))

    assert not found.proven
    assert found.not_proven
    assert any("rests on a grid" in note for note in found.notes)


def test_a_part_ends_where_the_norm_passes_the_level():
    # |1/(1 + jw)| = 1/2 at w = sqrt 3
    response = frequency_response(uncertain([[-1.0]], [[1.0]], [[1.0]], (1,)))
    plain = Scalings(D=np.eye(1, dtype=complex), G=np.zeros((1, 1), dtype=complex))
    ((low, high),) = proven_parts(response, plain, 0.5, (0.0, 4.0))

    assert np.abs(level_frequencies(response, plain, 0.5) - np.sqrt(3)).min() < 1e-12
    assert np.sqrt(3) < low < np.sqrt(3) + 0.03
    assert high == 4.0


@pytest.mark.parametrize("seed", range(3))
def test_every_change_of_sign_is_an_eigenvalue_of_the_hamiltonian(seed):
    loop, rng = random_loop(seed, sizes=(1, 1, 1)), np.random.default_rng(seed)
    response = frequency_response(loop)
    scalings = Scalings(D=np.diag(rng.uniform(1, 2, 3)) + 0j, G=np.diag(rng.normal(size=3)) + 0j)
    w = np.linspace(0, 40, 40_001)
    depth = scalings.depth(response(w))
    changes = np.flatnonzero(depth[:-1] * depth[1:] < 0)
    roots = w[changes] - depth[changes] * 1e-3 / (depth[changes + 1] - depth[changes])
    found = level_frequencies(response, scalings, 1.0)

    assert len(roots) > 0
    assert np.abs(roots[:, None] - found).min(axis=1).max() < 1e-4  # secants of steps of 1e-3


@pytest.mark.parametrize("seed", range(4))
def test_a_bound_is_that_of_ab13md_or_a_little_lower(seed):
    loop = random_loop(seed, sizes=(1, 1, 1, 1))
    M, blocks = frequency_response(loop)(np.array([5.0]))[0], blocks_of(loop)
    witness = slycot.ab13md(M, np.ones(4, dtype=int), np.ones(4, dtype=int))[0]
    tight = bound(blocks)(M, 1e-3)

    assert witness / 1.2 < tight <= witness * (1 + 2e-3)


def test_a_bound_proves_that_no_real_error_makes_it_singular():
    loop = random_loop(7, sizes=(1, 1, 1))
    M, real = frequency_response(loop)(np.array([0.0]))[0], blocks_of(loop)
    largest = bound(real)(M, 1e-3)
    corners = np.array(list(itertools.product((-1.0, 1.0), repeat=3)))
    gain = [np.abs(x[np.abs(x.imag) < 1e-9]).max(initial=0) for d in corners
            for x in [np.linalg.eigvals(M * d)]]  # fmt: skip

    assert max(gain) == pytest.approx(largest, rel=2e-3)  # at w = 0, a corner is the worst


def test_a_loop_that_falls_apart_has_the_bound_of_its_worse_half():
    # as planes of an arm do that do not move each other; ab13md never returns of such a matrix
    halves = [random_loop(seed, sizes=(1, 1)) for seed in (1, 2)]
    M = [frequency_response(half)(np.array([3.0]))[0] for half in halves]
    both, of_one = np.kron(np.eye(2), np.zeros((2, 2))).astype(complex), blocks_of(halves[0])
    both[:2, :2], both[2:, 2:] = M
    blocks = tuple(Block(first=k, size=1) for k in range(4))

    largest = max(bound(of_one)(part, 1e-3) for part in M)
    assert bound(blocks)(both, 1e-3) == pytest.approx(largest, rel=2e-3)


def test_scalings_of_a_level_hold_at_a_larger_one():
    response, real = frequency_response(random_loop(4)), blocks_of(random_loop(4))
    M = response(np.array([0.0]))
    level = 1.01 * bound(real)(M[0], 1e-3)
    found = find_scalings(M / level, real)

    assert found.depth(M / level) < 0
    assert found.at_level(1 / 3).depth(M / (3 * level)) < 0


def test_no_scalings_where_an_error_makes_it_singular():
    assert find_scalings(np.array([[[1.001 + 0j]]]), (Block(first=0, size=1),)) is None
    assert find_scalings(np.array([[[0.999 + 0j]]]), (Block(first=0, size=1),))


def test_the_frequency_response_is_that_of_the_state_space():
    loop = random_loop(8, n=9, sizes=(2, 1))
    w = np.array([0.0, 0.7, 5.0, np.inf])
    direct = [
        loop.D + loop.V @ np.linalg.solve(1j * x * np.eye(9) - loop.A, loop.U) for x in w[:-1]
    ]

    np.testing.assert_allclose(frequency_response(loop)(w)[:-1], direct, atol=1e-12)
    np.testing.assert_array_equal(frequency_response(loop)(w)[-1], loop.D)


def test_an_ill_posed_loop_is_bounded_at_infinite_frequency():
    loop = uncertain([[-1.0]], [[0.1, 0]], [[0.1], [0]], (1, 1), D=np.diag([0.0, 0.8]))

    assert find_mu_bounds(loop).guaranteed_fraction == pytest.approx(1.25, rel=0.015)


def test_the_crossing_of_one_error_is_on_the_grid_and_shows_its_peak():
    found = find_mu_bounds(damped_only(1e-3, 2.0))

    assert found.mu[np.argmin(np.abs(found.grid - 1.0))] == pytest.approx(2.0, rel=2e-3)


def test_frequencies_of_a_sampled_loop_are_those_of_its_samples():
    loop = oscillator(0.01, 0.5, 2.0)  # its poles cross at w = 1, of z at 2 atan(1)/T
    sampled = uncertain(loop.A, loop.U, loop.V, (1, 1), sample_time=0.1)
    found = find_mu_bounds(sampled)

    assert found.grid[-1] == pytest.approx(np.pi / 0.1)
    assert np.abs(found.grid - 2 * np.arctan(1.0) / 0.1).min() < 1e-9


def test_the_guarantee_is_cut_at_what_a_parameter_bears():
    loop = uncertain([[-3.0]], [[1.0]], [[1.0]], (1,), lowest=-2.0)
    half = replace(loop, parameters=(replace(loop.parameters[0], range=0.5),))

    assert any("from its lowest value -100 % up to +150 %" in x for x in find_mu_bounds(half).notes)


def test_what_no_parameter_may_have_is_guaranteed_against_and_no_worst_case():
    # -1 - d1/2 - d2/10 = 0 at d1 = -2 alone, where no stiffness is; with d >= -1 there is none
    loop = uncertain([[-1.0]], [[1.0, 1.0]], [[-0.5], [-0.1]], (1, 1), lowest=-1.0)
    found = find_mu_bounds(loop)

    assert found.worst_case is None
    assert found.guaranteed_fraction == pytest.approx(1 / 0.6, rel=0.015)


@pytest.mark.parametrize(("excluded", "exact"), [(False, 1.0), (True, 3.0)])
def test_the_margin_of_one_error_ends_at_its_lowest_value_if_it_may_have_that(excluded, exact):
    # x'' + (1 - d/3) x' + (1 + d) x = 0: stable for -1 < d < 3
    loop = uncertain([[0, 1], [-1, -1]], [[0, 0], [-1, 1 / 3]], [[1, 0], [0, 1]], (2,), lowest=-1.0)
    loop = replace(loop, parameters=(replace(loop.parameters[0], excluded=excluded),))

    assert find_mu_bounds(loop).guaranteed_fraction == pytest.approx(exact, rel=1e-9)


@pytest.mark.parametrize(("lowest", "exact"), [(-np.inf, 2.0), (-1.0, 5.0)])
def test_the_margin_of_one_error_ends_where_it_loses_its_meaning(lowest, exact):
    # x'' + (1 - d/5) x' + (1 + d/2) x = 0: stable for -2 < d < 5
    loop = uncertain(
        [[0, 1], [-1, -1]], [[0, 0], [-0.5, 0.2]], [[1, 0], [0, 1]], (2,), lowest=lowest
    )

    assert find_mu_bounds(loop).guaranteed_fraction == pytest.approx(exact, rel=1e-9)


@pytest.mark.parametrize(("lost_below", "exact"), [(-np.inf, 3.0), (-1.5, 3.0), (-1.0, 1.0)])
def test_the_exact_margin_of_one_error_goes_on_above_its_lowest_value(lost_below, exact):
    # x'' + (1 - d/3) x' + (1 - d/lost_below) x = 0 with d >= -1, by the crossings of a margin
    loop = uncertain(
        [[0, 1], [-1, -1]], [[0, 0], [1, 1 / 3]], [[1 / lost_below, 0], [0, 1]], (2,), lowest=-1.0
    )
    found = find_mu_bounds(loop)

    assert found.guaranteed_fraction == pytest.approx(exact, rel=1e-9)


def test_an_unstable_loop_is_refused():
    with pytest.raises(InputError, match="stable without errors"):
        find_mu_bounds(uncertain([[0.5]], [[1.0]], [[1.0]], (1,)))


def narrow(width):
    """x'' + (g + 0.1 d1 d2 - 0.1 (d1 + d2)) x' + x = 0, g = 0.1 (1 - width^2).

    Of d1 = d2 = d it is 0.1 ((d - 1)^2 - width^2): unstable within `width` of 1 only.
    """
    U = [[0, 0, 0], [0.1, 0.1, -0.1]]
    D = np.zeros((3, 3))
    D[2, 0] = 1.0  # the third channel sees d1 x', of which d2 makes d1 d2 x'
    g = 0.1 * (1 - width**2)
    return uncertain([[0, 1], [-1, -g]], U, [[0, 1], [0, 1], [0, 0]], (1, 2), D=D)


def test_the_worst_case_is_not_larger_than_that_of_equal_errors():
    # a search that walks in steps passes over the narrow window, between 0.998 and 1.002
    loop = narrow(2e-3)
    found = find_mu_bounds(loop)

    assert find_worst_case(loop).gamma > 0.999
    assert found.worst_case.gamma == pytest.approx(0.998, rel=1e-6)
    assert found.guaranteed_fraction <= found.worst_case.gamma


def test_errors_known_to_destabilise_are_none_smaller_than_the_worst_case():
    loop = random_loop(21, sizes=(2, 1))
    free = find_worst_case(loop)

    assert find_worst_case(loop, known=0.5 * free.delta[None]).gamma <= 0.5 * free.gamma


def test_known_errors_that_no_parameter_may_have_are_no_worst_case():
    loop = uncertain([[-1.0]], [[1.0, 1.0]], [[-0.5], [-0.1]], (1, 1), lowest=-1.0)

    assert find_worst_case(loop, known=np.array([[-2.0, 0.0]])) is None


def test_one_error_of_many_channels_needs_no_cover():
    # w_k^2 = k, damping 0.02; the error -0.9 of every stiffness is none, -1.1 is one too many
    n = 9
    A = np.block(
        [[np.zeros((n, n)), np.eye(n)], [-np.diag(np.arange(1.0, n + 1)), -0.02 * np.eye(n)]]
    )
    U, V = (
        np.vstack([np.zeros((n, n)), -np.eye(n)]),
        np.hstack([np.diag(np.arange(1.0, n + 1)), np.zeros((n, n))]),
    )
    found = find_mu_bounds(uncertain(A, U, V, (n,)))

    assert found.guaranteed_fraction == found.worst_case.gamma == pytest.approx(1.0, rel=1e-9)
    assert found.proven
    assert found.cover is None
    assert (found.mu <= found.mu_peak * (1 + 1e-9)).all()


def test_a_motion_that_no_error_moves_is_left_out():
    damped = oscillator(0.1, 0.5, 2.0)
    A = np.zeros((4, 4))
    A[:2, :2], A[2:, 2:] = damped.A, [[0, 3], [-3, 0]]
    U, V = np.vstack([damped.U, np.zeros((2, 2))]), np.hstack([damped.V, np.zeros((2, 2))])
    found = find_mu_bounds(uncertain(A, U, V, (1, 1)))

    assert found.proven
    assert found.guaranteed_fraction == pytest.approx(0.5, rel=0.015)


def test_what_stops_at_its_deadline_is_proven_so_far():
    loop = random_loop(12, sizes=(2, 1))
    whole, stopped = find_mu_bounds(loop), find_mu_bounds(loop, deadline=Deadline.within(1e-3))

    assert not stopped.proven
    assert "0.001 s" in stopped.stopped
    assert any("more time may find" in note for note in stopped.notes)
    assert 0 < stopped.guaranteed_fraction <= whole.guaranteed_fraction * 1.011
    samples = np.random.default_rng(1).uniform(-1, 1, size=(500, 2))
    assert (growth(loop, stopped.guaranteed_fraction * samples) < 0).all()


@pytest.mark.slow  # takes long
@pytest.mark.parametrize("seed", [0, *(pytest.param(k, marks=pytest.mark.slow) for k in (1, 2))])
def test_the_level_of_one_scaling_holds_at_every_frequency(seed):
    loop = random_loop(seed, sizes=(2, 1))
    response = frequency_response(loop)
    blocks = (Block(first=0, size=2), Block(first=2, size=1))
    level = level_of_one_scaling(response, np.array([0.0, 1.0, np.inf]))
    bounds = [bound(blocks)(M, 1e-3) for M in response(np.geomspace(1e-2, 1e2, 40))]

    assert max(bounds) < level < np.inf


@pytest.mark.parametrize("left", [0.0, 5.0])
def test_a_deadline_shares_what_is_left(left):
    deadline = Deadline.within(left)

    assert deadline.passed == (left == 0)
    assert deadline.part(0.5).left == pytest.approx(left / 2, abs=0.1)
    assert not Deadline().part(0.1).passed


def test_a_limit_that_was_reached_is_the_one_that_was_given_beside_its_part():
    whole = Deadline.within(20.0)
    assert whole.reached == "the time limit of 20 s was reached"
    part = Deadline(begun=1.0, ends=1.5, whole=20.0)
    assert part.reached == "the time limit of 20 s (0.5 s of it for this part) was reached"
    assert part.part(0.1).whole == 20.0


def test_nothing_is_guaranteed_where_errors_move_an_undamped_motion():
    # x'' + (1 + d1) x = 0 stays on the axis, and d2 drives it off; round-off lifts it a little
    loop = uncertain([[0, 1], [-1, 1e-13]], [[0, 0], [-1, -1]], [[1, 0], [0, 1]], (1, 1))
    found = find_mu_bounds(loop)

    assert (found.guaranteed_fraction, found.mu_peak) == (0.0, np.inf)
    assert found.frequency == pytest.approx(1.0)
    assert found.worst_case is None
    assert any("undamped mode lies" in note for note in found.notes)
