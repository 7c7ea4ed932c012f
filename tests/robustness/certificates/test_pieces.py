"""Chains of proven pieces against exact intervals, closed forms and perturbed matrices."""

import numpy as np
import pytest

from flexctl.errors import FlexctlError
from flexctl.robustness.certificates import pieces
from flexctl.robustness.certificates.one_error import OneErrorLoop
from flexctl.robustness.certificates.pieces import FARTHEST, GAP, certified_errors, find_piece
from flexctl.robustness.certificates.proof import prove_piece
from flexctl.robustness.lft import Parameter, UncertainLoop, bilinear, stable_interval


def loop_of(A, U, V, D=None, sampled=False):
    A, U, V = (np.atleast_2d(np.asarray(x, dtype=float)) for x in (A, U, V))
    D = np.zeros((len(V), len(V))) if D is None else np.atleast_2d(np.asarray(D, dtype=float))
    return OneErrorLoop(A=A, U=U, V=V, D=D, sampled=sampled)


def draw(seed):
    """Draw a stable loop of one error: dense or lightly damped, affine or rational, or sampled."""
    rng = np.random.default_rng(seed)
    n, r, sampled = int(rng.integers(1, 13)), int(rng.integers(1, 4)), bool(rng.integers(2))
    U, V = rng.standard_normal((n, r)) * rng.choice([0.1, 1, 10]), rng.standard_normal((r, n))
    light = n % 2 == 0 and not sampled and rng.integers(2)
    if light:
        w, zeta = 10.0 ** rng.uniform(0, 3, n // 2), 10.0 ** rng.uniform(-4, -0.5, n // 2)
        A = np.block(
            [[np.zeros((n // 2, n // 2)), np.diag(w)], [-np.diag(w), -2 * np.diag(zeta * w)]]
        )
        U[: n // 2] = 0
    else:
        A = rng.standard_normal((n, n)) / np.sqrt(n)
        values = np.linalg.eigvals(A)
        below = values.real.max() + 10.0 ** rng.uniform(-3, 0)
        A = A * rng.uniform(0.3, 0.99) / np.abs(values).max() if sampled else A - below * np.eye(n)
    kinds = [np.zeros((r, r)), -np.diag(rng.integers(0, 2, r)), 0.5 * rng.standard_normal((r, r))]
    return loop_of(A, U, V, kinds[rng.integers(3)], sampled)


def exact_ends(loop):
    """Ends of the exact interval of stability, by the guardian map."""
    n, r = len(loop.A), len(loop.D)
    error = Parameter(name="alpha", size=r, lowest=-1.0, excluded=True)
    names = tuple(map(str, range(n)))
    one = UncertainLoop(A=loop.A, U=loop.U, V=loop.V, D=loop.D, parameters=(error,), states=names)
    found = stable_interval(bilinear(one, 1.0) if loop.sampled else one)
    return found.lower, found.upper


def excess(loop, error, r=0.0, count=1, seed=0):
    """How far the worst eigenvalue of some perturbed loops lies beyond the limit of stability."""
    inner = np.eye(len(loop.D)) - error * loop.D
    A = loop.A + error * loop.U @ np.linalg.solve(inner, loop.V)
    signs = np.random.default_rng(seed).choice([-1.0, 1.0], size=(count, *A.shape))
    values = np.linalg.eigvals(A + r * np.abs(A) * signs)
    return float((np.abs(values).max() - 1) if loop.sampled else values.real.max())


@pytest.mark.slow_but("5", "11", "22", "30", "37")
@pytest.mark.parametrize("seed", range(40))
def test_a_chain_comes_close_to_the_exact_ends_and_never_beyond(seed):
    loop = draw(seed)
    lower, upper = exact_ends(loop)
    found = certified_errors(loop, lower, upper)
    ends = max(lower, -FARTHEST), min(upper, FARTHEST)

    assert ends[0] <= found.alpha_lower < 0 < found.alpha_upper <= ends[1]
    assert found.alpha_lower <= (1 - 1.001 * GAP) * ends[0]
    assert found.alpha_upper >= (1 - 1.001 * GAP) * ends[1]
    assert not found.why
    assert all(excess(loop, x) < 0 for x in np.linspace(found.alpha_lower, found.alpha_upper, 301))


@pytest.mark.slow_but("54", "49", "48")
@pytest.mark.parametrize("seed", range(40, 60))
def test_what_is_asked_beyond_the_exact_ends_is_not_proven(seed):
    # the ends only say where to stop: a proof ends before the loop does
    loop = draw(seed)
    lower, upper = exact_ends(loop)
    found = certified_errors(loop, -0.999 if lower > -1 else lower, 10 * upper)

    assert lower <= found.alpha_lower
    assert found.alpha_upper <= upper
    assert found.why or np.isinf(upper) or upper >= FARTHEST / 10


@pytest.mark.slow_but("0.0001-68", "0.0001-60")
@pytest.mark.parametrize("seed", range(60, 70))
@pytest.mark.parametrize("r", [1e-4, 1e-2])
def test_no_perturbed_loop_within_what_is_certified_is_unstable(seed, r):
    loop = draw(seed)
    found = certified_errors(loop, *exact_ends(loop), r)
    if not found.proven:  # errors of the entries destabilise the loop without an error, or nearly
        wide = certified_errors(loop, *exact_ends(loop), r / 100)
        assert found.why
        assert wide.proven
        return
    for x in np.linspace(found.alpha_lower, found.alpha_upper, 11):
        assert excess(loop, x, r, count=1000, seed=seed) < 0


@pytest.mark.parametrize(
    ("loop", "ends"),
    [
        # x' = (alpha - 1) x
        (loop_of(-1, 1, 1), (-FARTHEST, 1.0)),
        # x' = (4 beta - 2) x with beta = alpha/(1 + alpha): beta < 1/2
        (loop_of(-2, 4, 1, -1), (-1.0, 1.0)),
        # x+ = (0.5 + alpha) x
        (loop_of(0.5, 1, 1, sampled=True), (-1.5, 0.5)),
        # x'' + 0.2 x' + (1 + alpha) x = 0: divergence at -1
        (loop_of([[0, 1], [-1, -0.2]], [[0], [-1]], [[1, 0]]), (-1.0, FARTHEST)),
        # x'' + (0.1 - alpha) x' + x = 0: flutter at 0.1
        (loop_of([[0, 1], [-1, -0.1]], [[0], [1]], [[0, 1]]), (-FARTHEST, 0.1)),
        # a double defective eigenvalue that moves to alpha - 1
        (loop_of([[-1, 1], [0, -1]], np.eye(2), np.eye(2)), (-FARTHEST, 1.0)),
    ],
    ids=["first order", "rational", "sampled", "divergence", "flutter", "defective"],
)
def test_ends_in_closed_form_are_reached(loop, ends):
    found = certified_errors(loop, *ends)

    assert ends[0] <= found.alpha_lower <= (1 - 1.001 * GAP) * ends[0]
    assert (1 - 1.001 * GAP) * ends[1] <= found.alpha_upper <= ends[1]


@pytest.mark.slow
def test_a_chain_that_takes_too_many_pieces_says_so():
    # the frequency grows tenfold, and in a piece by no more than its damping of 1e-3
    loop = loop_of([[0, 1], [-1, -2e-3]], [[0], [-1]], [[1, 0]])
    found = certified_errors(loop, -1.0, np.inf)

    assert 0 < found.alpha_upper < FARTHEST
    assert found.why == "300 pieces do not reach the exact end"


def test_a_loop_that_no_error_changes_is_proven_for_every_error():
    found = certified_errors(loop_of(-1, [[0.0]], 1), -1.0, np.inf)

    assert (found.alpha_lower, found.alpha_upper, found.pieces) == (-1.0, np.inf, 1)


@pytest.mark.parametrize("value", [0.0, 1e-9])
@pytest.mark.parametrize("sampled", [False, True])
def test_nothing_is_proven_of_a_loop_that_does_not_decay(value, sampled):
    A = np.diag([value, -1.0]) + (np.diag([1.0, 0.5]) if sampled else 0.0)
    for U in ([[0.0], [1.0]], [[0.0], [0.0]], [[1.0], [0.0]]):
        found = certified_errors(loop_of(A, U, [[1.0, 1.0]], sampled=sampled), -0.5, 0.5)
        assert not found.proven
        assert found.why == "the loop without error is not proven to be stable"


def test_a_piece_with_an_unstable_error_or_a_pole_in_it_is_refused():
    affine, rational = loop_of(-1, 1, 1), loop_of(-2, 1, 1, -1)

    for loop, inside, beyond in ((affine, 0.9, 1.0), (affine, 0.9, 1.1), (rational, 0.5, -1.0)):
        piece = find_piece(loop, 0.0, 0.1, 0.0)
        assert prove_piece(loop, piece.T, 0.0, 0.0, inside, 0.0)
        low, high = sorted((0.0, beyond))
        assert not prove_piece(loop, piece.T, 0.0, low, high, 0.0)


def test_singular_coordinates_prove_nothing(monkeypatch):
    monkeypatch.setattr(pieces, "basis", lambda *_: np.ones((3, 3)))
    one = np.ones((3, 1))
    loop = OneErrorLoop(
        A=np.diag([-1.0, -2.0, -3.0]), U=one, V=one.T, D=np.zeros((1, 1)), sampled=False
    )

    assert find_piece(loop, 0.0, 0.1, 1e-12) is None
    assert certified_errors(loop, -0.1, 0.1).pieces == 0


def test_a_second_order_term_with_a_pole_is_not_bounded():
    # I - h |D| is singular at h = 1, where no eigenvalue of h D is 1
    D = np.array([[0.5, 0.5], [-0.5, 0.5]])
    loop = OneErrorLoop(A=-np.eye(2), U=np.eye(2), V=1e-3 * np.eye(2), D=D, sampled=False)
    piece = find_piece(loop, 0.0, 0.1, 1e-12)

    assert not piece.holds(-1.0, 1.0)


def test_the_battery_holds_loops_of_all_kinds():
    loops = [draw(seed) for seed in range(70)]

    assert sum(loop.sampled for loop in loops) > 10
    assert sum(bool(loop.D.any()) for loop in loops) > 10
    for loop in loops:
        try:
            exact_ends(loop)
        except FlexctlError as error:
            pytest.fail(f"no exact interval: {error}")
