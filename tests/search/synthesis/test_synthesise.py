"""Controllers of a given structure: closed forms, Riccati equations, published norms, refusals."""

import control
import numpy as np
import pytest

import flexctl
from benchmarks.output_feedback import ac15_plant
from flexctl.errors import DesignError, InputError


def state_feedback(A, B, R, dt=0):
    """w drives all states, z = (x, R^1/2 u), y = x."""
    n, m = B.shape
    D = np.zeros((2 * n + m, n + m))
    D[n : n + m, n:] = np.sqrt(R)
    outputs = np.vstack([np.eye(n), np.zeros((m, n)), np.eye(n)])
    return control.ss(A, np.hstack([np.eye(n), B]), outputs, D, dt)


def random_plant(seed, n=4, m=2):
    random = np.random.default_rng(seed)
    return random.standard_normal((n, n)), random.standard_normal((n, m))


def vibrating(n, seed=0):
    """M x'' + D x' + K x = 0 with D to be found: rates measured, forces applied."""
    random = np.random.default_rng(seed)
    roots = random.standard_normal((2, n, n))
    M, K = roots[0] @ roots[0].T + np.eye(n), roots[1] @ roots[1].T + 0.5 * np.eye(n)
    none, inverse = np.zeros((n, n)), np.linalg.inv(M)
    A = np.block([[none, np.eye(n)], [-inverse @ K, none]])
    plant = control.ss(A, np.vstack([none, inverse]), np.hstack([none, np.eye(n)]), 0)
    # the 2n eigenvalues have the product det K/det M, so one of them is at least this far right
    return plant, -((np.linalg.det(K) / np.linalg.det(M)) ** (1 / (2 * n)))


@pytest.mark.parametrize(("n", "accuracy"), [(1, 1e-6), (2, 1e-3), (3, 1e-2)])
def test_free_damping_makes_all_eigenvalues_equal(n, accuracy):
    plant, best = vibrating(n)
    table = [[f"-d{min(i, j)}{max(i, j)}" for j in range(n)] for i in range(n)]
    found = flexctl.synthesise(plant, table, "abscissa")

    assert (found.gain == found.gain.T).all()
    # 2n equal eigenvalues are known to the 2n-th root of round-off
    assert best * (1 + 1e-9) <= found.norm <= best * (1 - accuracy)


def companion(constraint):
    """Monic polynomials of degree n with b0 + b1 a1 + ... + bn an = 0, as output feedback."""
    b0, b = constraint[0], np.array(constraint[1:])
    n = len(b)
    start = -b0 * b / (b @ b)
    free = np.linalg.svd(b[None])[2][1:]
    A = np.eye(n, k=-1)
    A[0] = -start
    return control.ss(A, np.eye(n)[:, :1], -free, 0)


@pytest.mark.parametrize("constraint", [(-1.0, 1.0, 2.0, 1.0), (-4.0, 0.5, 0.0, 1.0), (-2.0, 1, 1)])
def test_polynomials_with_one_affine_constraint(constraint):
    n = len(constraint) - 1
    # [BlondelGurbuzbalabanMegretskiOverton12]: the least real b with h(-b) = 0, or with that of a
    # derivative, h(z) = sum of b_j binomial(n, j) z^j; here it is a root of h itself
    from math import comb

    h = np.polynomial.Polynomial([b * comb(n, j) for j, b in enumerate(constraint)])
    roots = [[-z.real for z in h.deriv(i).roots() if abs(z.imag) < 1e-9] for i in range(n)]
    assert min(roots[0]) <= min(min(one, default=np.inf) for one in roots[1:])
    found = flexctl.synthesise(companion(constraint), 0, "abscissa", nmeas=n - 1, ncon=1)

    assert min(roots[0]) - 1e-9 <= found.norm <= min(roots[0]) + 1e-3


def test_the_radius_of_polynomials_with_a_given_product_of_roots():
    plant = companion((-0.3, 0.0, 0.0, 1.0))
    plant = control.ss(plant.A, plant.B, plant.C, plant.D, True)
    found = flexctl.synthesise(plant, 0, "abscissa", nmeas=2, ncon=1)

    assert np.exp(found.norm) == pytest.approx(0.3 ** (1 / 3), rel=1e-3)


def test_two_masses_and_a_spring_have_six_equal_poles():
    # [BurkeHenrionLewisOverton06]: of order two the best abscissa is -sqrt(15)/5
    A = [[0, 0, 1, 0], [0, 0, 0, 1], [-1, 1, 0, 0], [1, -1, 0, 0]]
    plant = control.ss(A, [[0], [0], [1], [0]], [[0, 1, 0, 0]], 0)
    found = flexctl.synthesise(plant, 2, "abscissa", nmeas=1, ncon=1)

    assert -np.sqrt(15) / 5 <= found.norm < 0.95 * -np.sqrt(15) / 5


@pytest.mark.parametrize("seed", range(3))
def test_static_h2_feedback_of_all_states_is_the_linear_quadratic_one(seed):
    A, B = random_plant(seed)
    gain, S, _ = control.lqr(A, B, np.eye(4), np.diag([1.0, 2.0]))
    plant = state_feedback(A, B, np.diag([1.0, 2.0]))
    found = flexctl.synthesise(plant, 0, "h2", nmeas=4, ncon=2)

    assert found.norm == pytest.approx(np.sqrt(np.trace(S)), rel=1e-9)
    assert found.gain == pytest.approx(-gain, abs=1e-4)
    assert found.status == "stationary"
    assert found.certified


def test_sampled_h2_feedback_is_the_linear_quadratic_one():
    A, B = random_plant(5)
    A = 1.2 * A / np.abs(np.linalg.eigvals(A)).max()
    gain, S, _ = control.dlqr(A, B, np.eye(4), np.eye(2))
    found = flexctl.synthesise(state_feedback(A, B, np.eye(2), 0.1), 0, "h2", nmeas=4, ncon=2)

    assert found.norm == pytest.approx(np.sqrt(np.trace(S)), rel=1e-9)
    assert found.gain == pytest.approx(-gain, abs=1e-4)
    assert found.controller.dt == 0.1


def test_a_scalar_h_infinity_problem_in_closed_form():
    # (1 + k^2)/(1 - k)^2 at zero frequency is least at k = -1
    plant = state_feedback(np.array([[-1.0]]), np.array([[1.0]]), np.eye(1))
    found = flexctl.synthesise(plant, 0, nmeas=1, ncon=1)

    assert found.norm == pytest.approx(np.sqrt(0.5), rel=1e-9)
    assert found.gain[0, 0] == pytest.approx(-1, abs=1e-4)


def least_gamma(A, B):
    """Least level at which the Riccati equation of state feedback has a solution, by bisection."""
    n, low, high = len(A), 1e-2, 1e2

    def solved(level):
        H = np.block([[A, np.eye(n) / level**2 - B @ B.T], [-np.eye(n), -A.T]])
        w, V = np.linalg.eig(H)
        if np.abs(w.real).min() < 1e-8:
            return False
        V = V[:, w.real < 0]
        X = np.real(V[n:] @ np.linalg.inv(V[:n]))
        return np.linalg.eigvalsh((X + X.T) / 2)[0] > 0

    for _ in range(50):
        middle = np.sqrt(low * high)
        low, high = (low, middle) if solved(middle) else (middle, high)
    return high


@pytest.mark.slow_but("1")
@pytest.mark.parametrize("seed", [1, 2])
def test_static_h_infinity_feedback_of_all_states_comes_close_to_the_riccati_equation(seed):
    A, B = random_plant(seed, n=3, m=1)
    found = flexctl.synthesise(state_feedback(A, B, np.eye(1)), 0, nmeas=3, ncon=1)
    gamma = least_gamma(A, B)

    # the infimum asks for ever larger gains
    assert gamma * (1 - 1e-6) <= found.norm <= gamma * (1 + 1e-5)


@pytest.mark.slow
def test_a_controller_of_full_order_is_not_better_than_hinfsyn():
    A, B = random_plant(7, n=2, m=1)
    D = np.array([[0, 0, 0], [0, 0, 1], [0, 1, 0]], dtype=float)
    plant = control.ss(
        A, np.hstack([np.ones((2, 1)), np.zeros((2, 1)), B]), [[1, 0], [0, 0], [0, 1]], D
    )
    gamma = control.hinfsyn(plant, 1, 1)[2]
    found = flexctl.synthesise(plant, 2, nmeas=1, ncon=1)

    assert gamma * (1 - 1e-3) <= found.norm <= 1.02 * gamma


@pytest.mark.slow
def test_the_supersonic_transport_is_as_good_as_published():
    # static: 15.29 by HIFOO, 15.2 by hinfstruct
    found = flexctl.synthesise(ac15_plant(), 0, nmeas=3, ncon=2)

    assert found.norm < 15.2
    assert control.norm(found.closed_loop, "inf") == pytest.approx(found.norm, rel=1e-6)


@pytest.mark.parametrize("norm", ["hinf", "h2"])
def test_no_better_gain_is_near(norm):
    A, B = random_plant(11)
    plant = state_feedback(A, B, np.eye(2))
    structure = flexctl.ControllerStructure.table(
        [["a", "b", 0.0, 0.0], [0.0, 0.0, "c", "d"]], bounds=dict.fromkeys("abcd", (-50, 50))
    )
    found = flexctl.synthesise(plant, structure, norm)
    kind = {"hinf": "inf", "h2": 2}[norm]
    random = np.random.default_rng(0)
    x = np.array(list(found.parameters.values()))
    for size in (1e-3, 1e-1):
        for step in random.standard_normal((30, 4)):
            near = np.clip(x * (1 + size * step), -50, 50)
            K = control.ss([], [], [], structure.gain(near))
            loop = plant.lft(K)
            if loop.poles().real.max() < 0:
                assert control.norm(loop, kind) >= found.norm * (1 - 1e-6)


def test_structures_hold_exactly():
    A, B = random_plant(11)
    plant = state_feedback(A, B, np.eye(2))
    mask = [[True, True, False, False], [False, False, True, True]]
    free = flexctl.synthesise(plant, mask, "h2")
    tied = flexctl.synthesise(plant, [["a", "b", 0, 0], [0, 0, "-a", "b"]], "h2")

    assert (free.gain[~np.array(mask)] == 0).all()
    assert tied.gain[0, 0] == -tied.gain[1, 2] == pytest.approx(tied.parameters["a"])
    full = flexctl.synthesise(plant, 0, "h2", nmeas=4, ncon=2)
    assert full.norm <= free.norm <= tied.norm


def test_bounds_hold():
    A, B = random_plant(0)
    plant = state_feedback(A, B, np.eye(2))
    free = flexctl.synthesise(plant, 0, "h2", nmeas=4, ncon=2)
    largest = 0.9 * max(free.parameters.values())
    names = flexctl.ControllerStructure.full(2, 4).names
    bounded = flexctl.ControllerStructure.pattern(
        np.ones((2, 4), dtype=bool), bounds=dict.fromkeys(names, (-100, largest))
    )
    found = flexctl.synthesise(plant, bounded, "h2")

    assert max(found.parameters.values()) == pytest.approx(largest)
    assert found.norm > free.norm


def test_a_start_is_never_made_worse():
    A, B = random_plant(0)
    plant = state_feedback(A, B, np.eye(2))
    gain, _, _ = control.lqr(A, B, 3 * np.eye(4), np.eye(2))
    start = control.ss([], [], [], -gain)
    before = control.norm(plant.lft(start), "inf")
    found = flexctl.synthesise(plant, 0, nmeas=4, ncon=2, start=start, starts=1)

    assert found.norm < before


def test_channels_may_be_named_in_any_order():
    plant = control.ss(
        [[1.0]], [[1.0, 1.0]], [[1.0], [1.0], [0.0]], [[0, 0], [0, 0], [1, 0]],
        inputs=["u", "w"], outputs=["y", "x", "cost"],
    )  # fmt: skip
    found = flexctl.synthesise(plant, 0, "h2", nmeas=["y"], ncon=["u"])

    assert found.parameters["D[1,1]"] == pytest.approx(-1 - np.sqrt(2), rel=1e-5)
    assert found.controller.input_labels == ["y"]
    assert found.controller.output_labels == ["u"]
    assert found.closed_loop.output_labels == ["x", "cost"]


def test_a_callback_ends_the_search():
    A, B = random_plant(0)
    seen = []

    def callback(progress):
        seen.append(progress)
        return len(seen) == 5

    plant = state_feedback(A, B, np.eye(2))
    found = flexctl.synthesise(plant, 0, nmeas=4, ncon=2, callback=callback)

    assert len(seen) == 5
    assert found.status == "stopped"
    assert found.spectral_abscissa < 0


@pytest.mark.parametrize("sample_time", [None, 0.02])
def test_a_pid_structure_is_the_usual_transfer_function(sample_time):
    pid = flexctl.ControllerStructure.pid(filter_time=0.1, sample_time=sample_time)
    Kp, Ki, Kd = 2.0, 3.0, 0.5
    values = {"Kp": Kp, "Ki": Ki, "Kd": Kd}
    K = pid.gain([values[name] for name in pid.names])
    system = control.ss(K[1:, 1:], K[1:, :1], K[:1, 1:], K[:1, :1], sample_time or 0)
    s = 0.7 + 1.1j
    if sample_time is None:
        expected = Kp + Ki / s + Kd * s / (0.1 * s + 1)
    else:
        rate = sample_time / (s - 1)
        expected = Kp + Ki * rate + Kd / (0.1 + rate)

    assert system(s) == pytest.approx(expected)


def test_shared_pid_numbers_are_the_same_in_all_channels():
    both = flexctl.ControllerStructure.pid([(0, 0), (1, 1)], shared=True)
    apart = flexctl.ControllerStructure.pid([(0, 0), (1, 1)])

    assert set(both.names) == {"Kp", "Ki", "Kd"}
    assert set(apart.names) == {"Kp1", "Ki1", "Kd1", "Kp2", "Ki2", "Kd2"}
    assert both.order == apart.order == 4


def test_decentralised_controllers_do_not_share_states():
    blocks = flexctl.ControllerStructure.decentralised([([0], [0], 1), ([1], [1, 2], 2)])
    K = blocks.gain(np.ones(len(blocks.names)))

    assert blocks.order == 3
    assert K.tolist() == [
        [1, 0, 0, 1, 0, 0],
        [0, 1, 1, 0, 1, 1],
        [1, 0, 0, 1, 0, 0],
        [0, 1, 1, 0, 1, 1],
        [0, 1, 1, 0, 1, 1],
    ]


def test_a_feedthrough_that_stays_makes_the_h2_norm_infinite():
    plant = control.ss([[-1.0]], [[1.0, 1.0]], [[1.0], [1.0]], [[1.0, 0.0], [0.0, 0.0]])
    with pytest.raises(DesignError, match=r"H2 norm is infinite: .* w1 to output z1"):
        flexctl.synthesise(plant, 0, "h2", nmeas=1, ncon=1)


def test_a_feedthrough_that_the_controller_makes_is_left_out():
    # y2 is the disturbance itself: its gain would pass to z = u at once
    plant = control.ss(
        [[1.0]], [[1.0, 1.0]], [[1.0], [0.0], [1.0], [0.0]], [[0, 0], [0, 1], [0, 0], [1, 0]]
    )
    found = flexctl.synthesise(plant, 0, "h2", nmeas=2, ncon=1)

    assert found.gain == pytest.approx(np.array([[-1 - np.sqrt(2), 0]]), abs=1e-5)


PLANT = state_feedback(*random_plant(0), np.eye(2))
SISO = control.ss([[1.0]], [[1.0]], [[1.0]], 0)


@pytest.mark.parametrize(
    ("arguments", "options", "says"),
    [
        ((3, 0), {"nmeas": 1, "ncon": 1}, "plant: expected a control.StateSpace, got int"),
        ((PLANT, 0), {}, "nmeas: expected the number of channels"),
        ((PLANT, 0), {"nmeas": 40, "ncon": 2}, "nmeas: expected 1 to 10, got 40"),
        ((PLANT, 0), {"nmeas": ["q"], "ncon": 2}, "nmeas: expected some of y"),
        ((PLANT, -1), {"nmeas": 4, "ncon": 2}, "structure: expected an order of at least 0"),
        ((PLANT, 0, "l1"), {"nmeas": 4, "ncon": 2}, "norm: expected hinf, h2, abscissa, got 'l1'"),
        ((SISO, 0), {"nmeas": 1, "ncon": 1}, "plant: expected inputs w and outputs z"),
        ((PLANT, [["a"]]), {"nmeas": 4}, "structure: expected a matrix of shape"),
        ((PLANT, [[1.0]]), {}, "structure: expected at least one free number"),
        ((PLANT, 0), {"nmeas": 4, "ncon": 2, "start": [[1.0]]}, "start: expected a matrix of"),
        ((PLANT, 0), {"nmeas": 4, "ncon": 2, "starts": 0}, "starts: expected at least 1"),
    ],
)
def test_what_does_not_fit_is_refused(arguments, options, says):
    with pytest.raises(InputError, match=says):
        flexctl.synthesise(*arguments, **options)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda S: S.table([["a"]], bounds={"b": (0, 1)}), "bounds: expected some of a, got 'b'"),
        (lambda S: S.table([["a"]], bounds={"a": (1, 0)}), "expected lower <= upper"),
        (lambda S: S.table([["a"], ["b", "c"]]), "table: expected rows of one length"),
        (lambda S: S.table([["a"]], order=1), "table: expected more than 1 rows and columns"),
        (lambda S: S.pattern([[1.0]]), "pattern: expected a matrix of True and False"),
        (lambda S: S.pid(terms="PX"), "terms: expected some of PID, got 'PX'"),
        (lambda S: S.pid(filter_time=0), "filter_time: expected one number above 0"),
        (lambda S: S.decentralised([]), "blocks: expected"),
    ],
)
def test_structures_that_make_no_sense_are_refused(make, says):
    with pytest.raises(InputError, match=says):
        make(flexctl.ControllerStructure)


@pytest.mark.slow
def test_an_unstable_loop_that_the_structure_cannot_help_is_refused():
    plant = control.ss(np.diag([1.0, 1.0]), np.eye(2), np.eye(2), 0)
    with pytest.raises(DesignError, match="no stable loop found"):
        flexctl.synthesise(plant, [["k", 0], [0, "-k"]], "abscissa")
