"""Certificates against fifty digits, perturbed matrices, and eigenvalues that are known."""

import mpmath
import numpy as np
import pytest

import flexctl
from flexctl.errors import InputError
from flexctl.loop import linear_poses
from flexctl.model import BasisChoice, list_designs, load_design, load_model
from flexctl.robustness import Case

DIGITS = 50


def exact_bound(A, sampled):
    """Spectral abscissa or radius of A itself, to fifty digits."""
    with mpmath.workdps(DIGITS):
        values = mpmath.eig(mpmath.matrix(A.tolist()), left=False, right=False)
        return max(map(abs, values)) if sampled else max(mpmath.re(z) for z in values)


def is_proven_by(T, A, bound, sampled):
    """Whether V = |T x|^2 falls as fast as the bound says, to fifty digits, at A itself."""
    with mpmath.workdps(DIGITS):
        T, A, b = mpmath.matrix(T.tolist()), mpmath.matrix(A.tolist()), mpmath.mpf(bound)
        P = T.T * T
        Q = b * b * P - A.T * P * A if sampled else 2 * b * P - A.T * P - P * A
        try:
            mpmath.cholesky(P)
            mpmath.cholesky(Q)
        except ValueError:
            return False
        return True


def corners(A, r, count, seed=0):
    """Matrices (count, n, n) at the corners of |A~ - A| <= r |A|."""
    signs = np.random.default_rng(seed).choice([-1.0, 1.0], size=(count, *A.shape))
    return A + r * np.abs(A) * signs


def damped(w, zeta):
    """x' = A x of oscillators with frequencies w [rad/s] and damping ratios zeta."""
    zero, K, D = np.zeros((len(w), len(w))), np.diag(w**2), np.diag(2 * zeta * w)
    return np.block([[zero, np.eye(len(w))], [-K, -D]])


def jordan(size, value):
    """Jordan block."""
    return value * np.eye(size) + np.diag(np.ones(size - 1), 1)


def rotated(A, seed):
    """A in other orthonormal coordinates."""
    Q = np.linalg.qr(np.random.default_rng(seed).standard_normal(A.shape))[0]
    return Q @ A @ Q.T


def companion(roots):
    """Companion matrix of a polynomial with these roots."""
    last = np.poly(roots)[1:][::-1]
    return np.diag(np.ones(len(roots) - 1), 1) - np.outer(np.eye(len(roots))[-1], last)


def draw(kind, seed):
    """Draw a matrix of some kind: about half of them are stable."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 9))
    A = rng.standard_normal((n, n)) / np.sqrt(n)
    if kind == "plain":
        return A - rng.uniform(0, 2) * np.eye(n)
    if kind == "scaled":  # states in very different units
        units = 10.0 ** rng.uniform(-6, 6, n)
        return (A - rng.uniform(0, 2) * np.eye(n)) * units / units[:, None]
    if kind == "light":
        w = 10.0 ** rng.uniform(0, 6, n)
        return damped(w, 10.0 ** rng.uniform(-6, -1, n) * rng.choice([1, 1, 1, -1e-3]))
    if kind == "multiple":
        return rotated(jordan(n, rng.uniform(-1, 0.2)), seed)
    return companion(-(10.0 ** rng.uniform(-2, 2, n)))


@pytest.mark.slow_but(
    "0-plain-False", "1-light-False", "2-light-False", "5-light-True", "7-light-True"
)
@pytest.mark.parametrize("sampled", [False, True])
@pytest.mark.parametrize("kind", ["plain", "scaled", "light", "multiple", "companion"])
@pytest.mark.parametrize("seed", range(8))
def test_no_bound_is_contradicted_by_fifty_digits(kind, seed, sampled):
    A = draw(kind, seed)
    if sampled:
        A = A / (np.abs(np.linalg.eigvals(A)).max() or 1.0) * 10.0 ** -(seed % 3)
    found = flexctl.certify(A, sample_time=0.01 if sampled else None)
    exact = exact_bound(A, sampled)

    assert found.bound >= exact
    assert found.T is None or is_proven_by(found.T, A, np.nextafter(found.bound, np.inf), sampled)
    assert found.proven == (found.bound < (1.0 if sampled else 0.0))


@pytest.mark.slow_but("jordan-True-1e-05", "jordan-False-0.01", "jordan-False-1e-09")
@pytest.mark.parametrize("r", [1e-9, 1e-5, 1e-2])
@pytest.mark.parametrize("sampled", [False, True])
@pytest.mark.parametrize(
    "A",
    [
        damped(np.array([1.0, 7.0, 30.0]), np.array([0.02, 0.05, 0.01])),
        draw("plain", 3),
        draw("scaled", 5),
        jordan(3, -0.5),
        companion(np.array([-1.0, -1.5, -2.0, -3.0])),
    ],
    ids=["oscillators", "plain", "scaled", "jordan", "companion"],
)
def test_no_bound_is_contradicted_by_ten_thousand_perturbed_matrices(A, r, sampled):
    if sampled:
        A = 0.98 * A / np.abs(np.linalg.eigvals(A)).max()
    found = flexctl.certify(A, sample_time=1.0 if sampled else None, relative_error=r)
    values = np.linalg.eigvals(corners(A, r, 10_000))
    worst = (np.abs(values) if sampled else values.real).max()

    assert np.isfinite(found.bound)
    assert found.bound >= worst * (1 - 1e-14 * np.sign(worst))


def test_the_bound_is_attained_where_the_worst_matrix_is_known():
    # diagonal matrices: the slowest eigenvalue moves by r of itself
    A, r = np.diag([-3.0, -0.5, -40.0]), 1e-3

    assert flexctl.certify(A, relative_error=r).bound == pytest.approx(-0.5 * (1 - r), rel=1e-6)
    held = flexctl.certify(np.diag([0.3, -0.9]), sample_time=1.0, relative_error=r)
    assert held.bound == pytest.approx(0.9 * (1 + r), rel=1e-6)


@pytest.mark.parametrize("value", [1e-9, 0.0, 1e-15])
@pytest.mark.parametrize("others", [[], [-1.0], [-1e-9, -1e6], [-1.0] * 5])
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("r", [0.0, 1e-12])
def test_an_eigenvalue_that_does_not_decay_is_never_certified(value, others, turned, r):
    A = np.diag([value, *others])
    if turned:  # by an exact similarity: integers, without round-off
        S = np.eye(len(A)) + np.diag(np.full(len(A) - 1, 2.0), 1)
        A = S @ A @ np.round(np.linalg.inv(S))
    found = flexctl.certify(A, relative_error=r)

    assert not found.proven
    assert found.bound >= value


@pytest.mark.parametrize("size", [0.0, 1e-9])
def test_an_oscillation_that_does_not_decay_is_never_certified(size):
    assert not flexctl.certify([[size, 1e4], [-1e4, size]]).proven
    assert not flexctl.certify([[0.0, 1.0 + size], [-1.0 - size, 0.0]], sample_time=1e-3).proven


@pytest.mark.parametrize("size", [2, 3, 4, 6])
@pytest.mark.parametrize("turned", [False, True])
def test_multiple_defective_eigenvalues_are_certified(size, turned):
    A = jordan(size, -1.0)
    A = rotated(A, size) if turned else A
    pairs = np.kron(np.eye(size), [[-0.1, 3.0], [-3.0, -0.1]]) + np.diag(np.ones(2 * size - 2), 2)

    assert flexctl.certify(A).bound < -0.9
    assert flexctl.certify(jordan(size, 0.5), sample_time=1.0).bound < 0.6
    assert flexctl.certify(jordan(size, 0.0), sample_time=1.0).bound < 0.01  # a pure delay
    assert flexctl.certify(pairs).bound < -0.08


def test_lightly_damped_stiff_oscillators_are_certified():
    w = np.geomspace(1.0, 1e6, 25)
    found = flexctl.certify(damped(w, np.full(25, 1e-3)))
    one = flexctl.certify(damped(np.array([1e4]), np.array([1e-7])))

    assert (found.states, found.proven) == (50, True)
    assert found.bound == pytest.approx(-1e-3, rel=1e-6)
    assert one.bound == pytest.approx(-1e-3, rel=1e-4)


def test_a_wanted_decay_is_proven_where_there_is_more():
    A = [[0.0, 1.0], [-1.0, -0.2]]
    held = np.diag([np.exp(-0.2), 0.5])

    assert flexctl.certify(A, decay=0.0999).proven
    slower = flexctl.certify(A, decay=0.1001)
    assert not slower.proven
    assert flexctl.explain(slower).startswith("A decay at 0.1001 1/s is not proven. Proven in int")
    found = flexctl.certify(held, sample_time=0.1, decay=1.9)
    assert found.proven
    assert found.spectral_abscissa == pytest.approx(-2.0, rel=1e-9)
    assert not flexctl.certify(held, sample_time=0.1, decay=2.1).proven


@pytest.mark.parametrize(
    ("A", "changes"),
    [
        (np.array([[-1.0, 1e150], [0.0, -1e-150]]), {}),
        (np.array([[-1e8, 1e3], [1e-3, -1e-3]]), {}),
        (np.diag([-1.7e308, -1e-300]), {}),
        (1.7e308 * np.array([[-1.0, 0.0], [0.0, -1.0]]), {}),
        (np.full((2, 2), 1e200), {"sample_time": 1.0}),
        ([[0.5]], {"sample_time": 1e-320}),
        ([[-1.0, 0.5], [0.5, -1.0]], {"relative_error": 0.9}),
    ],
)
def test_extreme_numbers_give_an_answer_that_is_no_claim_or_true(A, changes):
    found = flexctl.certify(A, **changes)
    limit = 1.0 if "sample_time" in changes else 0.0

    assert found.bound >= exact_bound(np.asarray(A), limit == 1.0)
    assert found.proven == (found.bound < limit)
    assert found.spectral_abscissa > -np.inf
    assert (found.P is None) == (found.T is None)
    assert "roven" in flexctl.explain(found)


@pytest.mark.parametrize(
    ("A", "changes", "said"),
    [
        ([[1.0, 2.0]], {}, "A: expected a square matrix, got shape"),
        ([[np.nan]], {}, "A: expected finite numbers"),
        (np.zeros((0, 0)), {}, "A: expected one state at least, got none"),
        ([[-1.0]], {"relative_error": -1e-3}, "relative_error: expected at least 0 and below 1"),
        ([[-1.0]], {"relative_error": 1.0}, "relative_error: expected at least 0 and below 1"),
        ([[-1.0]], {"relative_error": np.inf}, "relative_error: expected finite numbers"),
        ([[-1j]], {}, "A: expected real numbers"),
        ([[1e-9]], {"decay": -1e-6}, "decay: expected one number of at least 0, got -1e-06"),
        ([[-1.0]], {"sample_time": 0.0}, "sample_time: expected one number above 0"),
        ([[-1.0]], {"decay": np.nan}, "decay: expected finite numbers"),
    ],
)
def test_bad_input_is_one_clear_line(A, changes, said):
    with pytest.raises(InputError, match=said):
        flexctl.certify(A, **changes)


def stable_loops(names, orders):
    """Linear loops of catalogue designs at the final pose and along the motion, up to 48 states."""
    for name in names:
        for kind, order in orders:
            design, truth = load_design(name), BasisChoice(kind=kind, order=order)
            case = Case.of(load_model(design.model), design, truth_basis=truth)
            poses = linear_poses(case.closed)
            for loop in (poses.final, *poses.path):
                if loop and loop.poles.real.max() < -1e-9 and len(loop.in_modes.A) <= 48:
                    yield name, kind, order, loop


def refused(loops):
    """Count loops, and list those that are not certified, or wrongly so."""
    count, lost = 0, []
    for *where, loop in loops:
        found, exact = flexctl.certify(loop), loop.poles.real.max()
        count += 1
        if not found.proven:
            lost.append(where)
        assert found.spectral_abscissa >= exact - 1e-7 * abs(exact), where
    return count, lost


@pytest.mark.slow
def test_loops_of_the_catalogue_are_certified():
    names = ["hub-pd", "rrp-observer", "subudhi-morris-lqr", "vertical-2r-integral"]
    count, lost = refused(stable_loops(names, [("modes", 2)]))

    assert count > 60
    assert not lost


@pytest.mark.slow
def test_nearly_all_stable_loops_of_the_catalogue_are_certified():
    names = [entry.name for entry in list_designs() if not load_design(entry.name).open_loop]
    orders = [(kind, order) for kind in ("modes", "elements") for order in (1, 2, 3, 4, 6)]
    count, lost = refused(stable_loops(names, orders))

    assert count > 2000
    assert len(lost) <= 0.05 * count


def test_coordinates_that_are_singular_prove_nothing_and_stop_nothing():
    # chains of multiple eigenvalues whose entries differ by twenty orders of magnitude
    A = np.zeros((8, 8))
    for first, last, value in ((0, 3, -1.8832422117537933e-10), (3, 6, -0.062470790650932966),
                               (6, 8, -0.02633062613621994)):  # fmt: skip
        A[range(first, last), range(first, last)] = value
    chain = {0: 2.776049985585557e-06, 1: 1.5152800714657935e-16, 3: 0.07293493652948964,
             4: 1776.7132258503004, 6: 204.4671941091898}  # fmt: skip
    for row, value in chain.items():
        A[row, row + 1] = value
    found = flexctl.certify(A, relative_error=1e-9)
    assert found.bound >= A[0, 0]
    assert found.proven == (found.bound < 0)
