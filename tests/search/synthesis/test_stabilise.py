"""Output feedback that stabilises: published problems, families, what cannot be stabilised."""

import numpy as np
import pytest

import flexctl
from benchmarks.output_feedback_problems import FAMILIES, PUBLISHED
from flexctl.errors import DesignError, InputError
from flexctl.search.synthesis import stabilising
from flexctl.search.synthesis.interconnection import Interconnection

NAMED = {problem.name: problem for problem in (*PUBLISHED, *FAMILIES)}
QUICK = [name for name in NAMED if name != "NN10"]


def closed(problem, found):
    """State matrix of the loop, put together by hand."""
    A, B, C = problem.A, problem.B, problem.C
    return np.block([[A + B @ found.Dk @ C, B @ found.Ck], [found.Bk @ C, found.Ak]])


@pytest.mark.slow_but("AC1-0", "REA2-0", "NN15-0", "chain-20-0", "beam-30-2")
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


@pytest.mark.slow_but("2-1-0-True", "4-1-2-True", "2-1-0-False")
@pytest.mark.parametrize("sampled", [False, True])
@pytest.mark.parametrize(("n", "m", "seed"), [(2, 1, 0), (4, 1, 2), (5, 2, 3), (6, 1, 4)])
def test_any_decay_is_reached_with_all_states_or_full_order(n, m, seed, sampled):
    random = np.random.default_rng(seed)
    A, B = random.normal(size=(n, n)), random.normal(size=(n, m))
    time, decay = (0.1, 15.0) if sampled else (None, 5.0 if n < 6 else 3.0)

    of_states = flexctl.stabilise(A, B, np.eye(n), sample_time=time, decay=decay)
    of_one = flexctl.stabilise(A, B, np.eye(n)[:1], n, sample_time=time, decay=decay)

    for found in (of_states, of_one):
        assert found.spectral_abscissa <= -decay
        assert found.starts <= 4  # by a design, not by chance


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


def aimed(w, T):
    """Decay [1/s] that is aimed at of a diagonal plant with modes w [1/s], or sampled with T."""
    A = np.diag(w) if T is None else np.diag(np.exp(np.multiply(w, T)))
    one = np.ones((len(w), 1))
    return stabilising._aim(Interconnection.of(A, one, one.T, sampled=T is not None), T)


@pytest.mark.parametrize("T", [None, 0.01, 0.1])
@pytest.mark.parametrize(
    ("w", "aim"),
    [([3.0, 0.5, -8.0], 0.3), ([0.0, -2.0, -8.0], 0.2), ([-1.0, -2.0], 0.0)],
    ids=["unstable", "integrator", "stable"],
)
def test_a_sampled_plant_is_to_be_as_fast_as_the_continuous_one(w, aim, T):
    assert aimed(w, T) == pytest.approx(aim, rel=1e-6)


@pytest.mark.parametrize(("T", "aim"), [(None, 0.1), (0.02, 5.0)])
def test_integrators_alone_have_no_time_of_their_own(T, aim):
    assert aimed([0.0, 0.0], T) == pytest.approx(aim)


def test_a_large_plant_is_tried_at_least_once():
    assert stabilising.affordable(3000) == 1


@pytest.mark.parametrize("sample_time", [None, 0.5])
def test_a_mode_that_stays_slower_than_the_wanted_decay_is_named(sample_time):
    slow = -0.1 if sample_time is None else np.exp(-0.1 * sample_time)
    loop = np.diag([slow, 1.5]), [[0], [1]], [[1, 1]]
    with pytest.raises(DesignError, match="decays more slowly than wanted and is uncontrollable"):
        flexctl.stabilise(*loop, sample_time=sample_time, decay=0.11)
    found = flexctl.stabilise(*loop, sample_time=sample_time, decay=0.1)
    assert found.spectral_abscissa == pytest.approx(-0.1)


def test_a_decay_of_more_than_all_digits_in_a_sample_is_refused():
    with pytest.raises(
        InputError, match=r"^decay: expected at most 72 1/s at a sample time of 0.5"
    ):
        flexctl.stabilise([[1.5]], [[1.0]], [[1.0]], sample_time=0.5, decay=800.0)


TWO_MASSES = np.array([[0, 0, 1, 0], [0, 0, 0, 1], [-1, 1, 0, 0], [1, -1, 0, 0]], float)


def test_marginal_is_not_stable():
    # two masses and a spring, pushed here and seen there
    with pytest.raises(DesignError, match="try order=2, or more starts"):
        flexctl.stabilise(TWO_MASSES, [[0], [0], [1], [0]], [[0, 1, 0, 0]], 1, starts=15)


def test_positions_alone_damp_nothing():
    B, C = np.eye(4)[:, 2:], np.eye(4)[:2]
    with pytest.raises(DesignError, match="the sum of all eigenvalues is 0 with all gains"):
        flexctl.stabilise(TWO_MASSES, B, C)
    assert flexctl.stabilise(TWO_MASSES, B, C, 1).certified


def test_modes_in_the_units_of_their_inputs_are_no_fixed_modes():
    # each has a feedback, with gains that are as large or small as the units
    for size in (1e-20, 1e20):
        found = flexctl.stabilise([[1.0, 1.0], [0.0, 2.0]], [[0], [size]], [[1, 0], [0, 1]])
        assert found.certified


@pytest.mark.slow_but("1-None", "6-None", "2-None")
@pytest.mark.parametrize("sample_time", [None, 0.1])
@pytest.mark.parametrize("seed", range(8))
def test_a_single_gain_is_found_if_there_is_one(seed, sample_time):
    # stable within a narrow range of gains only
    random = np.random.default_rng(seed)
    n = int(random.integers(2, 12))
    A, b, c = (random.standard_normal(shape) for shape in ((n, n), (n, 1), (1, n)))
    w = np.linalg.eigvals(A)
    A = 0.999 * A / np.abs(w).max() if sample_time else A - (w.real.max() + 1e-3) * np.eye(n)
    k = 10.0 ** random.uniform(-2, 2)
    found = flexctl.stabilise(A - k * b @ c, b, c, sample_time=sample_time, starts=30)
    w = np.linalg.eigvals(A + (found.K - k) * (b @ c))

    assert (np.abs(w).max() < 1) if sample_time else (w.real.max() < 0)
    assert found.certified


@pytest.mark.parametrize("sample_time", [None, 0.1])
def test_a_single_gain_that_does_not_exist_is_not_sought(sample_time):
    # between two real zeros outside lies one real pole: no stable controller helps
    A, b, c = np.diag([1.1, 1.5, 2.0]), np.ones((3, 1)), np.ones((1, 3))
    with pytest.raises(DesignError, match="no static gain makes the loop stable: the eigenvalues"):
        flexctl.stabilise(A, b, c, sample_time=sample_time)
    gains = np.r_[-np.logspace(-6, 6, 500), 0, np.logspace(-6, 6, 500)]
    w = np.linalg.eigvals(A + gains[:, None, None] * (b @ c))
    assert ((np.abs(w).max(1) >= 1) if sample_time else (w.real.max(1) >= 0)).all()


@pytest.mark.slow_but("False-None")
@pytest.mark.parametrize("sample_time", [None, 0.1])
@pytest.mark.parametrize("transposed", [False, True])
def test_an_observer_of_reduced_order_is_among_the_starts(transposed, sample_time):
    # zeros between unstable poles: order n - 1 always helps, but is hard to find
    A, B = np.diag([1.1, 1.5, 2.0, 2.5]), np.ones((4, 1))
    C = np.array([[1.0, 1.0, 1.0, 1.0], [0.0, 1.0, 2.0, 4.0]])
    if transposed:
        B, C = C.T, B.T
    found = flexctl.stabilise(A, B, C, 2, sample_time=sample_time, starts=8)

    assert found.certified


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
        ((np.eye(2), [[1]], np.eye(2)), "B: expected 2 x at least 1 entries"),
        ((np.eye(2), np.eye(2), [[1]]), "C: expected at least 1 x 2 entries"),
        ((np.eye(2), np.eye(2), np.eye(2), -1), "order: expected a whole number of at least 0"),
        ((np.eye(2), np.eye(2), np.eye(2), 1.5), "order: expected a whole number of at least 0"),
        ((np.zeros((0, 0)), np.zeros((0, 1)), np.zeros((1, 0))), "A: expected at least one state"),
        (([[np.nan]], [[1]], [[1]]), "A: expected finite numbers"),
        (([[1j]], [[1]], [[1]]), "A: expected real numbers"),
        (([[1e200]], [[1]], [[1]]), "A: expected entries of 1e-60 to 1e.60 in size, or 0"),
        (([[1]], [[1e-200]], [[1]]), "B: expected entries of 1e-60 to 1e"),
        (([[1]], [1], [[1]]), "B: expected 1 x at least 1 entries"),
        ((np.eye(2), np.zeros((2, 0)), [[1, 0]]), "B: expected 2 x at least 1 entries"),
    ],
)
def test_what_does_not_fit_is_refused(arguments, says):
    with pytest.raises(InputError, match=says):
        flexctl.stabilise(*arguments)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"starts": 0}, "starts: expected a whole number of at least 1, got 0"),
        ({"starts": 1.5}, "starts: expected a whole number of at least 1, got 1.5"),
        ({"seed": -1}, "seed: expected a whole number of at least 0, got -1"),
        ({"seed": "x"}, "seed: expected a whole number of at least 0, got 'x'"),
        ({"decay": -1.0}, "decay: expected one number of at least 0, got -1.0"),
        ({"sample_time": 0}, "sample_time: expected one number above 0, got 0"),
    ],
)
def test_options_that_make_no_sense_are_refused(options, says):
    with pytest.raises(InputError, match=says):
        flexctl.stabilise([[1.0]], [[1.0]], [[1.0]], **options)
