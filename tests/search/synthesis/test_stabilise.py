"""Output feedback that stabilises: published problems, families, what cannot be stabilised."""

import numpy as np
import pytest

import flexctl
from benchmarks.output_feedback_problems import FAMILIES, PUBLISHED
from flexctl.errors import DesignError, InputError

NAMED = {problem.name: problem for problem in (*PUBLISHED, *FAMILIES)}
QUICK = [name for name in NAMED if name != "NN10"]


def closed(problem, found):
    """State matrix of the loop, put together by hand."""
    A, B, C = problem.A, problem.B, problem.C
    return np.block([[A + B @ found.Dk @ C, B @ found.Ck], [found.Bk @ C, found.Ak]])


@pytest.mark.parametrize("order", [0, 2])
@pytest.mark.parametrize("name", QUICK)
def test_published_plants_and_families_are_stabilised(name, order):
    problem = NAMED[name]
    found = flexctl.stabilise(problem.A, problem.B, problem.C, order)
    poles = np.linalg.eigvals(closed(problem, found))

    assert poles.real.max() < 0
    assert found.spectral_abscissa == pytest.approx(poles.real.max(), abs=1e-6 * abs(poles).max())
    assert found.certified
    assert found.K.shape == (problem.B.shape[1] + order, len(problem.C) + order)


@pytest.mark.slow
def test_the_plant_of_wang_needs_many_starts():
    problem = NAMED["NN10"]
    found = flexctl.stabilise(problem.A, problem.B, problem.C)

    assert found.certified
    assert found.starts > 10


@pytest.mark.parametrize("seed", range(5))
def test_sampled_plants_are_stabilised(seed):
    random = np.random.default_rng(seed)
    A = random.standard_normal((5, 5))
    A *= 1.3 / np.abs(np.linalg.eigvals(A)).max()
    B, C = random.standard_normal((5, 2)), random.standard_normal((3, 5))
    found = flexctl.stabilise(A, B, C, sample_time=0.1)
    radius = np.abs(np.linalg.eigvals(A + B @ found.K @ C)).max()

    assert radius < 1
    assert found.spectral_abscissa == pytest.approx(np.log(radius) / 0.1)
    assert found.certified


def test_the_wanted_decay_is_reached():
    found = flexctl.stabilise([[0, 1], [0, 0]], [[0], [1]], np.eye(2), decay=3.0)

    assert found.spectral_abscissa <= -3


def test_a_stable_plant_may_be_left_alone():
    assert flexctl.stabilise([[-1.0]], [[1.0]], [[1.0]]).spectral_abscissa < 0


def test_the_same_seed_gives_the_same_gain():
    problem = NAMED["NN12"]
    first, second = (flexctl.stabilise(problem.A, problem.B, problem.C, seed=3) for _ in range(2))

    assert (first.K == second.K).all()


def test_a_mode_that_no_feedback_moves_is_named():
    with pytest.raises(DesignError, match="eigenvalue 2 is not stable and uncontrollable"):
        flexctl.stabilise([[2.0, 0.0], [0.0, -1.0]], [[0.0], [1.0]], np.eye(2))
    with pytest.raises(DesignError, match="eigenvalue 2 is not stable and unobservable"):
        flexctl.stabilise([[2.0, 0.0], [0.0, -1.0]], np.eye(2), [[0.0, 1.0]])


@pytest.mark.parametrize("order", [0, 1])
def test_marginal_is_not_stable(order):
    # two masses and a spring, pushed here and seen there: a static gain leaves some undamped
    A = [[0, 0, 1, 0], [0, 0, 0, 1], [-1, 1, 0, 0], [1, -1, 0, 0]]
    with pytest.raises(DesignError, match=f"try order={order + 1}, or more starts"):
        flexctl.stabilise(A, [[0], [0], [1], [0]], [[0, 1, 0, 0]], order, starts=15)


def test_two_masses_and_a_spring_are_stabilised_with_two_states():
    # the plant of [WieBernstein92]
    A = [[0, 0, 1, 0], [0, 0, 0, 1], [-1, 1, 0, 0], [1, -1, 0, 0]]
    found = flexctl.stabilise(A, [[0], [0], [1], [0]], [[0, 1, 0, 0]], 2)

    assert found.spectral_abscissa < -0.01
    assert found.certified


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (([[1, 2]], [[1]], [[1]]), "A: expected a square matrix"),
        ((np.eye(2), [[1]], np.eye(2)), "B: expected a matrix of 2 rows"),
        ((np.eye(2), np.eye(2), [[1]]), "C: expected a matrix of 2 columns"),
        ((np.eye(2), np.eye(2), np.eye(2), -1), "order: expected a whole number of at least 0"),
        ((np.eye(2), np.eye(2), np.eye(2), 1.5), "order: expected a whole number of at least 0"),
        ((np.zeros((0, 0)), np.zeros((0, 1)), np.zeros((1, 0))), "A: expected at least one state"),
        (([[np.nan]], [[1]], [[1]]), "A: expected finite numbers"),
    ],
)
def test_what_does_not_fit_is_refused(arguments, says):
    with pytest.raises(InputError, match=says):
        flexctl.stabilise(*arguments)
