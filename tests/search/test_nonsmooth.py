"""Nonsmooth minimisation: known minima, certificates, constraints that stand in the way."""

import numpy as np
import pytest
import scipy.optimize

from flexctl.errors import ComputationError, InputError
from flexctl.search.nonsmooth import Pieces, minimise, smallest_combination
from flexctl.search.nonsmooth.combination import solve_dual
from flexctl.search.nonsmooth.steps import LinearModel, make_step


def rosenbrock(x):
    """Smooth: minimum 0 at (1, 1)."""
    bend = x[1] - x[0] ** 2
    gradient = [-400 * x[0] * bend - 2 * (1 - x[0]), 200 * bend]
    return Pieces.of([100 * bend**2 + (1 - x[0]) ** 2], gradient)


def kinked_rosenbrock(x):
    """8 |x2 - x1^2| + (1 - x1)^2, its kink along a curve; one gradient only."""
    bend = x[1] - x[0] ** 2
    s = 1.0 if bend >= 0 else -1.0
    return Pieces.of([8 * abs(bend) + (1 - x[0]) ** 2], [-16 * s * x[0] - 2 * (1 - x[0]), 8 * s])


def charalambous_bandler(x):
    e = np.exp(x[1] - x[0])
    values = [x[0] ** 2 + x[1] ** 4, (2 - x[0]) ** 2 + (2 - x[1]) ** 2, 2 * e]
    gradients = [[2 * x[0], 4 * x[1] ** 3], [2 * x[0] - 4, 2 * x[1] - 4], [-2 * e, 2 * e]]
    return Pieces.of(values, gradients)


def largest_square(x):
    return Pieces.of(x**2, np.diag(2 * x))


MINIMA = [
    (rosenbrock, [-1.2, 1.0], 0.0),
    (kinked_rosenbrock, [-1.3, 0.7], 0.0),
    (kinked_rosenbrock, [-1.0, 1.0], 0.0),  # starts on the kink
    # root of the three curves' conditions, in the field's collections of test problems
    (charalambous_bandler, [1.0, -0.1], 1.95222449),
    (largest_square, [*range(1, 11), *range(-20, -10)], 0.0),
]


@pytest.mark.parametrize(("functions", "start", "least"), MINIMA)
def test_known_minima_are_found(functions, start, least):
    found = minimise(functions, np.array(start, dtype=float))

    assert found.objective == pytest.approx(least, abs=1e-7)
    assert found.violation == 0
    assert found.objective <= functions(np.array(start, dtype=float)).objective


def rosen_suzuki(x):
    value = x @ [x[0], x[1], 2 * x[2], x[3]] + x @ [-5, -5, -21, 7]
    limits = [
        x @ x + x @ [1, -1, 1, -1] - 8,
        x @ (x * [1, 2, 1, 2]) - x[0] - x[3] - 10,
        x @ (x * [1, 1, 1, 0]) + x @ [2, -1, 0, -1] - 5,
    ]
    slopes = [
        2 * x + [1, -1, 1, -1],
        2 * x * [1, 2, 1, 2] + [-1, 0, 0, -1],
        2 * x * [1, 1, 1, 0] + [2, -1, 0, -1],
    ]
    return Pieces.of([value], 2 * x * [1, 1, 2, 1] + [-5, -5, -21, 7], limits, slopes)


@pytest.mark.parametrize("start", [[0.0] * 4, [5.0, 5.0, -5.0, 5.0]])
def test_a_constrained_minimum_has_its_known_multipliers(start):
    found = minimise(rosen_suzuki, np.array(start), tolerance=1e-7)

    assert found.radius <= 1e-5
    assert found.x == pytest.approx([0, 1, 2, -1], abs=found.radius)
    assert found.multipliers == pytest.approx([1, 0, 2], abs=1e-4)
    assert found.violation == 0
    assert found.status == "stationary"


def test_a_kink_and_two_constraints_meet_at_the_minimum():
    def functions(x):
        base = kinked_rosenbrock(x)
        limits = [np.sqrt(2) * x[0] - 1, 2 * x[1] - 1]
        return Pieces.of(base.values, base.gradients, limits, [[np.sqrt(2), 0], [0, 2]])

    found = minimise(functions, np.array([-1.0, 1.0]))

    assert found.objective == pytest.approx((1 - np.sqrt(0.5)) ** 2, abs=1e-7)
    assert found.violation == 0


def test_bounds_hold_at_every_evaluation_and_act_in_the_certificate():
    seen = []

    def functions(x):
        seen.append(x[0])
        return rosenbrock(x)

    found = minimise(functions, np.array([-1.2, 1.0]), upper=np.array([0.5, 10.0]))

    assert max(seen) <= 0.5
    assert found.x == pytest.approx([0.5, 0.25])
    assert found.stationarity < 1e-6


def test_what_cannot_be_met_ends_at_the_least_violation_and_names_who_stand_against_each_other():
    def functions(x):
        return Pieces.of(
            [x[0]],
            [1.0, 0.0],
            [x[0] + 1, 1 - x[0], x[1] ** 2 - 1],
            [[1, 0], [-1, 0], [0, 2 * x[1]]],
        )

    found = minimise(functions, np.array([3.0, 3.0]))

    assert found.violation == pytest.approx(1)
    assert found.x[0] == pytest.approx(0, abs=1e-7)
    assert found.multipliers == pytest.approx([0.5, 0.5, 0])
    assert found.status == "stationary"


def test_the_largest_eigenvalue_of_a_symmetric_matrix_is_minimised_as_by_its_dual():
    # min over x of lambda_max(S + diag(x)), sum x = 0: diag of the dual matrix is constant
    random = np.random.default_rng(3)
    S = random.standard_normal((8, 8))
    S = S + S.T
    parts = np.vstack([np.eye(7), -np.ones(7)])

    def functions(x):
        w, V = np.linalg.eigh(S + np.diag(parts @ x))
        return Pieces.of(w[-4:], (V[:, -4:] ** 2).T @ parts)

    found = minimise(functions, np.zeros(7))

    w, V = np.linalg.eigh(S + np.diag(parts @ found.x))
    active = V[:, w > w[-1] - 1e-5]
    r = active.shape[1]
    # dual: X = V Y V', trace 1, all diagonal entries 1/8, Y >= 0
    terms = np.stack([np.outer(row, row).ravel() for row in active])
    Y = np.linalg.lstsq(terms, np.full(8, 1 / 8))[0].reshape(r, r)
    assert np.diag(active @ Y @ active.T) == pytest.approx(np.full(8, 1 / 8), abs=1e-4)
    assert np.linalg.eigvalsh((Y + Y.T) / 2)[0] > -1e-6


@pytest.mark.parametrize("seed", range(5))
def test_the_smallest_combination_meets_its_conditions(seed):
    random = np.random.default_rng(seed)
    hull, cone = random.normal([1, 0, 0, 0], size=(8, 4)), random.standard_normal((2, 4))
    element, weights, multipliers = smallest_combination(hull, cone)

    assert weights.sum() == pytest.approx(1)
    assert min(weights.min(), multipliers.min()) >= 0
    assert (hull @ element).min() == pytest.approx(element @ element, abs=1e-12)
    assert (cone @ element).min() > -1e-12


@pytest.mark.parametrize("seed", range(20))
def test_a_step_is_as_good_as_that_of_another_solver(seed):
    random = np.random.default_rng(seed)
    n, k, m = random.integers(1, 7), random.integers(1, 9), random.integers(1, 6)
    root = random.standard_normal((n, n))
    W = root @ root.T + 0.1 * np.eye(n)
    box = (-2 * random.random(n), 2 * random.random(n))
    model = LinearModel(
        values=random.standard_normal(k),
        gradients=3 * random.standard_normal((k, n)),
        constraints=random.standard_normal(m),
        constraint_gradients=random.standard_normal((m, n)),
        lowest=box[0],
        highest=box[1],
    )
    step = make_step(model, W, 1.0)
    B = np.linalg.inv(W)

    def cost(y):
        return y[n] + step.penalty * y[n + 1] + y[:n] @ B @ y[:n] / 2

    above = [
        {"type": "ineq", "fun": lambda y: y[n] - model.values - model.gradients @ y[:n]},
        {
            "type": "ineq",
            "fun": lambda y: y[n + 1] - model.constraints - model.constraint_gradients @ y[:n],
        },
    ]
    other = scipy.optimize.minimize(
        cost,
        np.r_[np.zeros(n), 5, 5],
        constraints=above,
        bounds=[*zip(*box, strict=True), (None, None), (0, None)],
        method="SLSQP",
        options={"maxiter": 500, "ftol": 1e-13},
    )
    assert cost(np.r_[step.d, model.after(step.d)]) <= other.fun + 1e-6 * (1 + abs(other.fun))


def test_dependent_rows_do_not_disturb_the_quadratic_program():
    rows = np.array([[1.0, 0.0], [1.0, 0.0], [-1.0, 0.0], [0.5, 0.0]])
    z = solve_dual(rows @ rows.T, np.array([0.0, 0.1, 0.0, 0.0]), np.ones((1, 4)), np.ones(1))

    # |z'R|^2/2 - 0.1 z_2: the second and third row in shares (1 + e)/2, (1 - e)/2, e = 0.05
    assert z == pytest.approx([0, 0.525, 0.475, 0], abs=1e-9)


def test_the_same_seed_gives_the_same_answer():
    first, second = (minimise(kinked_rosenbrock, np.array([-1.0, 1.0]), seed=4) for _ in range(2))

    assert (first.x == second.x).all()
    assert first.evaluations == second.evaluations


def test_a_callback_ends_the_search_and_sees_the_best_so_far():
    seen = []

    def callback(progress):
        seen.append(progress.objective)
        return progress.evaluations == 7

    found = minimise(rosenbrock, np.array([-1.2, 1.0]), callback=callback)

    assert found.status == "stopped"
    assert found.evaluations == 7
    assert seen == sorted(seen, reverse=True)
    assert found.objective == seen[-1]


def test_the_search_ends_at_its_target():
    found = minimise(rosenbrock, np.array([-1.2, 1.0]), target=1.0)

    assert found.status == "target"
    assert found.objective <= 1


def test_regions_without_a_value_are_avoided():
    def functions(x):  # -log(x) + x, which does not exist below zero
        return Pieces.of([x[0] - np.log(x[0])] if x[0] > 0 else [np.inf], [1 - 1 / x[0]])

    assert minimise(functions, np.array([0.01])).x[0] == pytest.approx(1, abs=1e-5)


def test_what_makes_no_sense_is_refused():
    with pytest.raises(InputError, match="expected lower <= upper"):
        minimise(rosenbrock, np.zeros(2), lower=np.ones(2), upper=np.zeros(2))
    with pytest.raises(InputError, match="scale: expected numbers above 0"):
        minimise(rosenbrock, np.zeros(2), scale=np.zeros(2))
    with pytest.raises(ComputationError, match="expected a finite objective"):
        minimise(lambda x: Pieces.of([np.inf], np.zeros_like(x)), np.zeros(2))
