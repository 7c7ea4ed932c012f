"""Controllers of a given structure: closed forms, Riccati equations, published norms, refusals."""

import control
import numpy as np
import pytest
import scipy.linalg

import flexctl
from benchmarks.output_feedback import ac15_plant
from flexctl.errors import DesignError, InputError
from flexctl.search.synthesis import synthesising


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


@pytest.mark.slow_but("1-1e-06")
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


@pytest.mark.slow
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


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 3])
def test_two_masses_and_a_spring_have_six_equal_poles(seed):
    # [BurkeHenrionLewisOverton06]: of order two the best abscissa is -sqrt(15)/5
    A = [[0, 0, 1, 0], [0, 0, 0, 1], [-1, 1, 0, 0], [1, -1, 0, 0]]
    plant = control.ss(A, [[0], [0], [1], [0]], [[0, 1, 0, 0]], 0)
    found = flexctl.synthesise(plant, 2, "abscissa", nmeas=1, ncon=1, seed=seed)

    assert -np.sqrt(15) / 5 <= found.norm < 0.98 * -np.sqrt(15) / 5


@pytest.mark.slow_but("3-1-1")
@pytest.mark.parametrize(("n", "m", "seed"), [(3, 1, 1), (3, 2, 1), (4, 2, 0)])
def test_the_abscissa_of_measured_states_has_no_minimum(n, m, seed):
    random = np.random.default_rng(seed)
    A, B = random.normal(size=(n, n)), random.normal(size=(n, m))
    measured = flexctl.synthesise(
        control.ss(A, B, np.eye(n), 0), 0, "abscissa", nmeas=n, ncon=m, starts=1
    )
    observed = flexctl.synthesise(
        control.ss(A, B, np.eye(n)[:2], 0), n - 2, "abscissa", nmeas=2, ncon=m, starts=1
    )

    for found in (measured, observed):
        assert found.status == "unbounded"
        assert "set bounds to them" in flexctl.explain(found)
        assert found.spectral_abscissa < -10


def test_a_mode_that_stays_is_the_least_abscissa():
    plant = control.ss(np.diag([-1.0, 2.0]), [[0.0], [1.0]], np.eye(2), 0)
    found = flexctl.synthesise(plant, 0, "abscissa", nmeas=2, ncon=1)

    assert found.norm == pytest.approx(-1)
    assert found.status != "unbounded"


@pytest.mark.slow_but("2")
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


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_static_h_infinity_feedback_of_all_states_comes_close_to_the_riccati_equation(seed):
    A, B = random_plant(seed, n=3, m=1)
    found = flexctl.synthesise(state_feedback(A, B, np.eye(1)), 0, nmeas=3, ncon=1)
    gamma = least_gamma(A, B)

    # the infimum asks for ever larger gains
    assert gamma * (1 - 1e-6) <= found.norm <= gamma * (1 + 1e-5)


def noisy_plant(seed, n, m=1, p=1):
    """Two disturbances and noise of y drive two errors and u: what the Riccati equations ask."""
    random = np.random.default_rng(seed)
    A, B1 = random.standard_normal((n, n)), random.standard_normal((n, 2))
    B, C1 = random.standard_normal((n, m)), random.standard_normal((2, n))
    D = np.zeros((2 + m + p, 2 + p + m))
    D[2 : 2 + m, 2 + p :], D[2 + m :, 2 : 2 + p] = np.eye(m), np.eye(p)
    outputs = np.vstack([C1, np.zeros((m, n)), random.standard_normal((p, n))])
    return control.ss(A, np.hstack([B1, np.zeros((n, p)), B]), outputs, D)


@pytest.mark.slow
@pytest.mark.parametrize("sampled", [False, True])
@pytest.mark.parametrize(("seed", "n"), [(7, 2), (1, 5)])
def test_a_controller_of_full_order_is_that_of_the_riccati_equations(seed, n, sampled):
    plant = noisy_plant(seed, n)
    gamma = control.hinfsyn(plant, 1, 1)[2]
    # Tustin's map keeps the norm
    given = control.sample_system(plant, 0.4, "tustin") if sampled else plant
    found = flexctl.synthesise(given, n, nmeas=1, ncon=1)

    assert gamma * (1 - 1e-6) <= found.norm <= 1.0011 * gamma


@pytest.mark.slow
@pytest.mark.parametrize("case", ["no u in z", "no noise of y", "an eigenvalue of -1"])
def test_plants_for_which_the_riccati_equations_are_not_made_have_a_controller(case):
    plant = noisy_plant(1, 2)
    A, B, C, D = plant.A, plant.B, plant.C, plant.D.copy()
    if case == "no u in z":
        D[2, -1] = 0.0
    elif case == "no noise of y":
        D[-1, 2] = 0.0
    else:
        A = np.diag([-1.0, 0.5])
    given = control.ss(A, B, C, D, 0.1 if case == "an eigenvalue of -1" else 0)
    found = flexctl.synthesise(given, 2, nmeas=1, ncon=1, starts=2)

    assert found.spectral_abscissa < 0
    assert control.norm(found.closed_loop, "inf") == pytest.approx(found.norm, rel=1e-6)


@pytest.mark.slow
def test_a_start_in_the_h2_norm_leads_past_a_poor_minimum():
    found = flexctl.synthesise(noisy_plant(24, 8, 2, 3), 1, nmeas=3, ncon=2)

    assert found.norm < 1000  # 711; 11876 without it


@pytest.mark.slow
def test_the_supersonic_transport_is_as_good_as_published():
    # static: 15.29 by HIFOO, 15.2 by hinfstruct
    found = flexctl.synthesise(ac15_plant(), 0, nmeas=3, ncon=2)

    assert found.norm < 15.2
    assert control.norm(found.closed_loop, "inf") == pytest.approx(found.norm, rel=1e-6)


@pytest.mark.slow_but("h2")
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


def masses_and_a_spring(rate=1.0, size=1.0):
    """Position and rate of the first of two masses measured; in other units of time and of z."""
    A = np.array([[0, 0, 1, 0], [0, 0, 0, 1], [-1, 1, 0, 0], [1, -1, 0, 0]], dtype=float)
    B = np.array([[0, 0, 0], [0, 0, 0], [1, 0, 1], [0, 1, 0]], dtype=float)
    C = np.array([[0, size, 0, 0], [0, 0, 0, 0], [1, 0, 0, 0], [0, 0, 1, 0]])
    D = np.zeros((4, 3))
    D[1, 2] = size
    return control.ss(rate * A, rate * B, C, D)


@pytest.mark.parametrize("size", [1e-8, 1.0, 1e6])
def test_units_of_the_outputs_change_no_controller(size):
    found = flexctl.synthesise(masses_and_a_spring(size=size), 0, "h2", nmeas=2, ncon=1, starts=2)

    # the minimum by a simplex method and own Lyapunov equations
    assert found.norm / size == pytest.approx(2.270128105203462, rel=1e-9)
    assert found.gain == pytest.approx(np.array([[-0.6070073, -1.71782714]]), rel=1e-4)
    assert found.status == "stationary"


@pytest.mark.slow
def test_units_of_the_outputs_change_no_h_infinity_norm():
    plant = masses_and_a_spring(size=1e-6)
    found = flexctl.synthesise(plant, 0, "hinf", nmeas=2, ncon=1, starts=2)

    assert found.norm / 1e-6 == pytest.approx(3.25823856, rel=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("rate", [1e-6, 1e6])
def test_units_of_time_change_no_abscissa(rate):
    plant = masses_and_a_spring(rate)
    found = flexctl.synthesise(plant, 0, "abscissa", nmeas=2, ncon=1, starts=2)

    assert found.norm / rate == pytest.approx(-0.5, rel=1e-3)  # four equal eigenvalues


@pytest.mark.slow_but("0.001-1.0", "0.001--1.0", "0.001-0.0")
@pytest.mark.parametrize("a", [0.0, -1.0, 1.0])
@pytest.mark.parametrize("b", [1e-3, 1e3, 1e8])
def test_a_gain_far_from_where_it_began_is_stationary_in_its_own_size(a, b):
    plant = control.ss([[a]], [[1, b]], [[1], [0], [1]], [[0, 0], [0, 1], [0, 0]])
    found = flexctl.synthesise(plant, 0, norm="h2", nmeas=1, ncon=1, starts=2)
    root = np.hypot(a, b)
    X = (a + root) / b**2 if a >= 0 else 1 / (root - a)  # of the Riccati equation

    assert found.norm == pytest.approx(np.sqrt(X), rel=1e-9)
    assert found.parameters["D[1,1]"] == pytest.approx(-b * X, rel=1e-4)


@pytest.mark.slow
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
    before = control.norm(plant.lft(start), 2)
    found = flexctl.synthesise(plant, 0, "h2", nmeas=4, ncon=2, start=start, starts=1)

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


THROUGH = {  # y = x + d u: effective gains are searched; y2 = w: a plane of gains
    "effective gains": [[0, 0], [0, 0.7], [0, 0.5], [0, 0.2]],
    "a plane": [[0, 0], [0, 1], [0, 0], [1, 0]],
}


@pytest.mark.parametrize("case", THROUGH)
def test_a_callback_is_told_the_numbers_of_the_structure(case):
    plant = control.ss([[1.0]], [[1.0, 1.0]], [[1.0], [0.0], [1.0], [0.0]], THROUGH[case])
    seen = []
    found = flexctl.synthesise(plant, 0, "h2", nmeas=2, ncon=1, starts=1, callback=seen.append)
    nearest = min(seen, key=lambda one: abs(one.objective - found.norm))

    assert nearest.x == pytest.approx(list(found.parameters.values()), rel=1e-3, abs=1e-6)


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


@pytest.mark.parametrize(
    ("dt", "sample_time", "says"),
    [
        (0.1, 0.05, "expected sample_time=0.1, as the plant has, got 0.05"),
        (0.1, None, "expected sample_time=0.1, as the plant has, got none"),
        (0, 0.1, "expected no sample_time, as the plant has, got 0.1"),
    ],
)
def test_a_pid_structure_for_another_sample_time_is_refused(dt, sample_time, says):
    plant = control.ss([[0.5]], [[1.0, 1.0]], [[1.0], [1.0]], np.zeros((2, 2)), dt)
    pid = flexctl.ControllerStructure.pid(filter_time=0.2, sample_time=sample_time)
    with pytest.raises(InputError, match=says):
        flexctl.synthesise(plant, pid)


def test_stable_loops_in_several_parts_between_bounds_are_all_looked_at():
    # feedthrough splits the stable gains of two channels; the part that starts lie in has 1.955
    random = np.random.default_rng(101)
    A = random.standard_normal((3, 3))
    A -= (np.linalg.eigvals(A).real.max() + 0.1) * np.eye(3)
    D = random.standard_normal((5, 4))
    D[:3, :2] = D[3:, :2] = 0
    D[3:, 2:] *= 0.3
    plant = control.ss(A, random.standard_normal((3, 4)), random.standard_normal((5, 3)), D)
    bounds = {"D[1,1]": (-10, 10), "D[2,2]": (-10, 10)}
    apart = flexctl.ControllerStructure.pattern(np.eye(2, dtype=bool), bounds=bounds)
    found = flexctl.synthesise(plant, apart, norm="h2", nmeas=2, ncon=2)

    # gains of 600 random ones: 1.285
    assert found.norm < 1.285
    assert found.spectral_abscissa < 0


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


def test_a_feedthrough_of_round_off_is_none():
    # the gains of a plane make no feedthrough, within round-off
    random = np.random.default_rng(3)
    A, B1, B, C1, C = (
        random.standard_normal(shape) for shape in ((3, 3), (3, 2), (3, 2), (1, 3), (2, 3))
    )
    D = np.zeros((3, 4))
    D[:1, 2:], D[1:, :2] = random.standard_normal((1, 2)), random.standard_normal((2, 2))
    plant = control.ss(A - 2 * np.eye(3), np.hstack([B1, B]), np.vstack([C1, C]), D)
    found = flexctl.synthesise(plant, 0, "h2", nmeas=2, ncon=2)

    assert abs(D[:1, 2:] @ found.gain @ D[1:, :2]).max() < 1e-12 * abs(found.gain).max()
    assert control.norm(found.closed_loop, 2) == pytest.approx(found.norm, rel=1e-8)


@pytest.mark.slow_but("h2-0")
@pytest.mark.parametrize(("norm", "order"), [("h2", 0), ("h2", 1), ("hinf", 0)])
def test_a_feedthrough_of_the_plant_changes_the_gain_alone(norm, order):
    # y = x + d u: the same loop as without d, by the gain k/(1 + k d)
    systems = [
        control.ss([[1.0]], [[1.0, 1.0]], [[1.0], [0.0], [1.0]], [[0, 0], [0, 0.7], [0, through]])
        for through in (0.0, 0.5)
    ]
    bare, fed = (flexctl.synthesise(one, order, norm, nmeas=1, ncon=1) for one in systems)

    assert fed.norm == pytest.approx(bare.norm, rel=1e-4)
    loop = systems[1].lft(fed.controller)
    assert loop.poles().real.max() == pytest.approx(fed.spectral_abscissa, rel=1e-6)
    if norm == "h2" and not order:
        k = bare.gain[0, 0]
        assert fed.gain[0, 0] == pytest.approx(k / (1 + 0.5 * k), rel=1e-4)


def test_a_plant_without_disturbance_has_an_abscissa():
    found = flexctl.synthesise(control.tf([1], [1, -1]), [["k"]], "abscissa", nmeas=1, ncon=1)

    assert found.spectral_abscissa == found.norm < -1e4
    assert found.status == "unbounded"  # any gain beyond 1, the larger the farther left
    assert "set bounds" in flexctl.explain(found)
    assert found.closed_loop.input_labels == ["none"]


def of_all_states(n, m, seed, *, sampled=False, measured=None):
    """(w, u) -> (x, u; y) of a random plant, y being all states or as many as are measured."""
    random = np.random.default_rng(seed)
    A, B = random.normal(size=(n, n)), random.normal(size=(n, m))
    A, p = (0.4 * A if sampled else A), measured or n
    C = np.vstack([np.eye(n), np.zeros((m, n)), np.eye(n)[:p]])
    D = np.zeros((n + m + p, n + m))
    D[n : n + m, n:] = np.eye(m)
    return A, B, control.ss(A, np.hstack([np.eye(n), B]), C, D, 0.1 if sampled else 0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n", "m", "seed", "decay"), [(2, 1, 0, 3.0), (2, 1, 0, 10.0), (4, 1, 2, 10.0), (3, 2, 1, 10.0)]
)
def test_all_states_reach_any_decay_and_better_than_the_regulator_with_it(n, m, seed, decay):
    A, B, plant = of_all_states(n, m, seed)
    X = scipy.linalg.solve_continuous_are(A + decay * np.eye(n), B, np.eye(n), np.eye(m))
    K = -B.T @ X
    norm = control.norm(control.ss(A + B @ K, np.eye(n), np.vstack([np.eye(n), K]), 0), 2)
    found = flexctl.synthesise(plant, 0, "h2", nmeas=n, ncon=m, decay=decay)
    assert found.spectral_abscissa <= -decay * (1 - 1e-6)
    assert found.norm < norm


@pytest.mark.slow
def test_a_sampled_plant_and_a_controller_of_full_order_reach_a_decay():
    _, _, plant = of_all_states(3, 1, 4, sampled=True)
    found = flexctl.synthesise(plant, 0, "h2", nmeas=3, ncon=1, decay=15.0)
    assert found.spectral_abscissa <= -15.0 * (1 - 1e-6)
    _, _, plant = of_all_states(3, 1, 0, measured=1)
    noisy = control.ss(
        plant.A, np.hstack([plant.B[:, :3], np.zeros((3, 1)), plant.B[:, 3:]]), plant.C,
        np.block([[np.zeros((5, 3)), np.eye(5)[:, 4:], plant.D[:, 3:]]]),
    )  # fmt: skip
    found = flexctl.synthesise(noisy, 3, "h2", nmeas=1, ncon=1, decay=4.0)
    assert found.spectral_abscissa <= -4.0 * (1 - 1e-6)


def test_a_decay_that_no_loop_has_is_not_claimed():
    # the eigenvalues of a damped mass of which only the position is fed back have the sum -1
    plant = control.ss([[0, 1], [0, -1.0]], [[0, 0], [1, 1]], [[1, 0], [1, 0]], 0)
    with pytest.raises(DesignError, match="no loop with decay=5 found, the best has a spectral"):
        flexctl.synthesise(plant, 0, "hinf", nmeas=1, ncon=1, decay=5.0)
    with pytest.raises(DesignError, match="no loop with decay=5 found, the best has a spectral"):
        flexctl.synthesise(plant, 0, "abscissa", nmeas=1, ncon=1, decay=5.0)


def test_a_mode_that_no_feedback_makes_faster_is_named():
    plant = control.ss(np.diag([1.0, -1.0]), [[1, 1], [1, 0]], np.vstack([np.eye(2)] * 2), 0)
    with pytest.raises(
        DesignError, match="eigenvalue -1 decays more slowly than wanted and is unc"
    ):
        flexctl.synthesise(plant, 0, "hinf", nmeas=2, ncon=1, decay=5.0)
    found = flexctl.synthesise(plant, 0, "hinf", nmeas=2, ncon=1, decay=0.9)
    assert found.spectral_abscissa <= -0.9


@pytest.mark.parametrize("through", [1e6, 1.0, -0.3])
def test_a_gain_that_nearly_short_circuits_the_feedthrough_is_no_answer(through):
    # nothing limits u: the least norm has an infinite gain from w to u, at K = 1/D22
    plant = control.ss([[1.0]], [[1.0, 1.0]], [[1.0], [1.0]], [[0, 0], [0, through]])
    with pytest.raises(DesignError, match="I - D22 K singular within round-off; set bounds"):
        flexctl.synthesise(plant, 0, norm="hinf", nmeas=1, ncon=1)


@pytest.mark.slow
def test_a_singular_feedthrough_is_no_traceback():
    # its best gains are without bound too
    through = np.zeros((3, 3))
    through[1:, 1:] = [[4, 2], [2, 1]]
    plant = control.ss([[1.0]], [[1, 1, 1.0]], [[1.0]] * 3, through)
    with pytest.raises(DesignError, match="set bounds, or count u among the outputs z"):
        flexctl.synthesise(plant, 0, norm="hinf", nmeas=2, ncon=2)


EYE = control.ss(np.diag([1.0, -1.0]), np.eye(2), np.eye(2), 0)


@pytest.mark.parametrize(
    ("plant", "structure", "says"),
    [
        (control.ss(EYE.A, [[0], [1]], np.eye(2), 0), 0, "eigenvalue 1 is not stable and uncontr"),
        (
            control.ss(EYE.A, np.eye(2), [[0, 1]], 0),
            3,
            "eigenvalue 1 is not stable and unobservable",
        ),
        (EYE, [[False, False], [False, True]], "eigenvalue 1 is not stable, and no free number"),
        (EYE, [[False, True], [False, False]], "eigenvalue 1 is not stable, and no free number"),
        (
            control.ss(np.diag([1.0, 1.0]), np.eye(2), np.eye(2), 0),
            [["k", 0], [0, "-k"]],
            "the sum of all eigenvalues is 2 with all gains",
        ),
    ],
)
def test_what_no_controller_of_the_structure_can_do_is_told_at_once(plant, structure, says):
    sizes = {"nmeas": len(plant.C), "ncon": plant.B.shape[1]} if isinstance(structure, int) else {}
    with pytest.raises(DesignError, match=says):
        flexctl.synthesise(plant, structure, "abscissa", **sizes)


PLANT = state_feedback(*random_plant(0), np.eye(2))
SISO = control.ss([[1.0]], [[1.0]], [[1.0]], 0)


NAN, ONES = np.nan, np.ones((2, 4))


@pytest.mark.parametrize("nmeas", [np.array(1), np.array([2])])
def test_channels_may_be_given_by_an_array(nmeas):
    mass = control.ss([[0, 1], [0, 0]], [[0, 0], [1, 1]], [[1, 0], [0, 0], [-1, 0]],
                      [[0, 0], [0, 0.1], [0, 0]])  # fmt: skip
    pd = flexctl.ControllerStructure.pid(terms="PD", filter_time=0.1)
    found = [flexctl.synthesise(mass, pd, "h2", nmeas=n, starts=1) for n in (1, nmeas)]

    assert found[0].norm == found[1].norm


@pytest.mark.parametrize(
    ("arguments", "options", "says"),
    [
        ((3, 0), {"nmeas": 1, "ncon": 1}, "plant: expected a control.StateSpace, got int"),
        ((PLANT, 0), {}, "nmeas: expected the number of channels"),
        ((PLANT, 0), {"nmeas": 40, "ncon": 2}, "nmeas: expected 1 to 10, got 40"),
        ((PLANT, 0), {"nmeas": ["q"], "ncon": 2}, "nmeas: expected some of y"),
        ((PLANT, -1), {"nmeas": 4, "ncon": 2}, "structure: expected a whole number of at least 0"),
        ((PLANT, None), {"nmeas": 4, "ncon": 2}, "structure: expected an order, a table or a"),
        ((PLANT, [["a", "b"], ["c"]]), {}, "structure: expected an order, a table or a"),
        ((PLANT, [["-"] * 4] * 2), {}, r"table\[1\]\[1\]: expected a number, a name"),
        ((PLANT, 0), {"nmeas": 4.0, "ncon": 2}, "nmeas: expected a number, or names or indices"),
        (
            (PLANT, 0),
            {"nmeas": np.array(4.0), "ncon": 2},
            "nmeas: expected a number, or names or indices, got 4.0",
        ),
        ((PLANT, 0), {"nmeas": [6, 6], "ncon": 2}, "nmeas: expected each channel once"),
        (
            (PLANT, 0),
            {"nmeas": [None], "ncon": 2},
            "nmeas: expected indices in 0",
        ),
        ((control.ss([], [], [], [[1.0]]), 0), {"nmeas": 1, "ncon": 1}, "plant: expected at least"),
        (
            (control.tf([1, 0, 0], [1, 1]), 0),
            {"nmeas": 1, "ncon": 1},
            "plant: transfer function",
        ),
        (
            (PLANT, 0),
            {"nmeas": 4, "ncon": 2, "decay": -1},
            "decay: expected one number of at",
        ),
        ((PLANT, 0), {"nmeas": 4, "ncon": 2, "seed": -1}, "seed: expected a whole number of at"),
        ((PLANT, 0), {"nmeas": 4, "ncon": 2, "callback": 3}, "callback: expected a function"),
        (
            (PLANT, 0),
            {"nmeas": 4, "ncon": 2, "start": control.ss([], [], [], np.ones((2, 4)), 0.1)},
            "start: expected the sample time of the plant 0, got 0.1",
        ),
        ((PLANT, 0, "l1"), {"nmeas": 4, "ncon": 2}, "norm: expected hinf, h2, abscissa, got 'l1'"),
        ((SISO, 0), {"nmeas": 1, "ncon": 1}, "plant: expected inputs w and outputs z"),
        ((PLANT, [["a"]]), {"nmeas": 4}, "structure: expected a matrix of shape"),
        ((PLANT, [[1.0]]), {}, "structure: expected at least one free number"),
        ((PLANT, 0), {"nmeas": 4, "ncon": 2, "start": [[1.0]]}, "start: expected a matrix of"),
        (
            (PLANT, 0),
            {"nmeas": 4, "ncon": 2, "start": control.ss([], [], [], NAN * ONES)},
            "start: expected finite numbers",
        ),
        (
            (PLANT, 1),
            {"nmeas": 4, "ncon": 2, "start": control.ss([[NAN]], ONES[:1], ONES[:, :1], ONES)},
            "start: expected finite numbers",
        ),
        ((PLANT, 0), {"nmeas": 4, "ncon": 2, "starts": 0}, "starts: expected a whole number of at"),
    ],
)
def test_what_does_not_fit_is_refused(arguments, options, says):
    with pytest.raises(InputError, match=says):
        flexctl.synthesise(*arguments, **options)


def numbered(kind, **given):
    """One free number a of a static gain, from lists."""
    parts = {"offset": [[0.5]], "directions": [[[2.0]]], "lower": [-1], "upper": [1]}
    return kind(names=("a",), order=0, **parts | given)


def test_a_structure_may_be_made_of_lists():
    structure = numbered(flexctl.ControllerStructure)

    assert structure.gain([0.25]).tolist() == [[1.0]]
    assert structure.nearest(np.array([[9.0]])).tolist() == [1.0]
    assert not structure.free


@pytest.mark.parametrize("kind", [np.int64, np.float32])
def test_bounds_may_be_numbers_of_numpy(kind):
    bounds = {"a": (kind(-1), kind(2))}
    structure = flexctl.ControllerStructure.table([["a"]], bounds=bounds)

    assert (structure.lower.tolist(), structure.upper.tolist()) == ([-1.0], [2.0])


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda S: S.table([["a"]], bounds={"b": (0, 1)}), "bounds: expected some of a, got 'b'"),
        (lambda S: S.table([["a"]], bounds={"a": (1, 0)}), "expected lower <= upper"),
        (lambda S: S.table([["a"], ["b", "c"]]), "table: expected rows of one length"),
        (lambda S: S.table([["a"]], order=1), "table: expected more than 1 rows and columns"),
        (lambda S: S.table("ab"), "table: expected rows of one length, got 'ab'"),
        (lambda S: S.table([[""]]), r"table\[1\]\[1\]: expected a number, a name .* got ''"),
        (
            lambda S: S.table(np.array([["k", 0]])),
            r"table\[1\]\[2\]: expected a number, .* '0'",
        ),
        (lambda S: S.table([["a"]], order=-1), "order: expected a whole number of at least 0"),
        (lambda S: S.table([["a"]], bounds={"a": 5}), r"bounds\[a\]: expected \(lower, upper\)"),
        (lambda S: S.table([["a"]], bounds={"a": (False, True)}), r"bounds\[a\]: expected \(low"),
        (lambda S: numbered(S, lower=[np.nan]), "lower: expected one bound of each of 1 free"),
        (lambda S: numbered(S, upper="x"), "upper: expected one bound of each of 1 free"),
        (lambda S: numbered(S, lower=[2.0]), "upper: expected 2 or more of a, got 1"),
        (lambda S: S.table([["a"]], bounds=[(1, 2)]), "bounds: expected pairs by name"),
        (lambda S: S.full(0, 1), "outputs: expected a whole number of at least 1, got 0"),
        (lambda S: S.full(1, 1).gain([1, 2]), r"x: expected an array of shape \(1,\)"),
        (lambda S: S.pattern([[True], [True, False]]), "pattern: expected a matrix of True"),
        (lambda S: S.pattern([[False]]), "structure: expected at least one free number"),
        (lambda S: S.pid([]), "channels: expected pairs of indices"),
        (lambda S: S.pid([(0, -1)]), "channels: expected pairs of indices"),
        (lambda S: S.pid([(0, 0), (0, 0)]), "channels: expected pairs of indices"),
        (lambda S: S.pid(sample_time=0.1), "filter_time: expected above half of sample_time"),
        (lambda S: S.decentralised([([0], [0], -1)]), "blocks: expected"),
        (lambda S: S.decentralised([([0, 0], [0], 1)]), "blocks: expected"),
        (lambda S: S.pattern([[1.0]]), "pattern: expected a matrix of True and False"),
        (lambda S: S.pid(terms="PX"), "terms: expected some of PID, got 'PX'"),
        (lambda S: S.pid(filter_time=0), "filter_time: expected one number above 0"),
        (lambda S: S.decentralised([]), "blocks: expected"),
    ],
)
def test_structures_that_make_no_sense_are_refused(make, says):
    with pytest.raises(InputError, match=says):
        make(flexctl.ControllerStructure)


@pytest.mark.parametrize("through", [0.0, 0.5])
def test_a_single_gain_that_cannot_help_is_refused_at_once(through):
    # two real zeros outside and one real pole between them
    A, one = np.diag([1.1, 1.5, 2.0]), np.ones((3, 1))
    plant = control.ss(A, np.hstack([one, one]), np.vstack([one.T, one.T]), [[0, 0], [0, through]])
    with pytest.raises(DesignError, match="synthesise: no static gain makes the loop stable"):
        flexctl.synthesise(plant, 0, "hinf", nmeas=1, ncon=1)


@pytest.mark.slow
def test_an_unstable_loop_that_the_structure_cannot_help_is_refused():
    # a difference of two gains: one pole or the other stays to the right
    plant = control.ss(np.diag([1.0, 1.0, -3.0]), np.eye(3), np.eye(3), 0)
    with pytest.raises(DesignError, match="no stable loop found from 200 starts"):
        flexctl.synthesise(plant, [["k", 0, 0], [0, "-k", 0], [0, 0, "l"]], "abscissa")


def integrator_ahead(slow=None):
    """x' = x + w + u, z = (x, u), y = -x, perhaps with a mode beside it that x drives."""
    A, B = np.array([[1.0]]), np.array([[1.0, 1.0]])
    C, D = np.array([[1.0], [0.0], [-1.0]]), np.array([[0.0, 0.0], [0.0, 1.0], [0.0, 0.0]])
    if slow is not None:
        A = np.array([[1.0, 0.0], [1.0, -slow]])
        B, C = np.vstack([B, 0 * B]), np.hstack([C, 0 * C])
    return control.ss(A, B, C, D)


@pytest.mark.parametrize("bounds", [(0.0, 10.0), (2.0, 10.0), (-np.inf, np.inf)])
def test_bounds_on_one_side_of_zero_are_searched_between(bounds):
    structure = flexctl.ControllerStructure.table([["k"]], bounds={"k": bounds})
    found = flexctl.synthesise(integrator_ahead(), structure, "h2")
    assert found.parameters["k"] == pytest.approx(1 + np.sqrt(2), rel=1e-6)


def test_a_weight_that_nearly_integrates_is_no_unstable_loop():
    # its mode is no feedback's: slower than what else counts as stable beyond round-off
    found = flexctl.synthesise(integrator_ahead(slow=5e-8), [["k"]], "h2")
    assert found.status == "stationary"
    assert found.parameters["k"] == pytest.approx(1 + np.sqrt(2), rel=1e-6)
    assert found.spectral_abscissa == pytest.approx(-5e-8, rel=1e-6)


def test_measurements_that_no_channel_names_are_not_used():
    mass = control.ss(
        [[0, 1], [0, 0]],
        [[0, 0], [1, 1]],
        [[1, 0], [0, 0], [-1, 0], [0, -1]],
        [[0, 0], [0, 0.1], [0, 0], [0, 0]],
    )
    structures = [
        flexctl.ControllerStructure.pid([(0, 0)], terms="PD", filter_time=0.1),
        flexctl.ControllerStructure.decentralised([((0,), (0,), 1)]),
    ]
    for structure in structures:
        found = flexctl.synthesise(mass, structure, "h2", nmeas=2, starts=1)
        assert found.gain.shape == (2, 3)
        assert (found.gain[:, 1] == 0).all()
        assert found.spectral_abscissa < 0
    with pytest.raises(InputError, match="expected a matrix of shape"):
        flexctl.synthesise(mass, [["k"]], "h2", nmeas=2)


def test_abscissae_of_sampled_loops_are_told_per_second():
    plant, seen = control.ss([[0.5]], [[1.0, 1.0]], [[1.0], [1.0]], 0, 0.1), list[float]()
    structure = flexctl.ControllerStructure.table([["k"]], bounds={"k": (-0.3, 0.3)})

    def tell(progress):
        seen.append(progress.objective)

    found = flexctl.synthesise(plant, structure, "abscissa", callback=tell)
    expected = np.log(0.2) / 0.1
    for value in (found.norm, found.history[-1][1], seen[-1]):
        assert value == pytest.approx(expected, rel=1e-6)


def test_a_fixed_feedthrough_goes_round_the_plant_s_own():
    # Dk (I - D22 Dk)^-1 = -1 of Dk = -2: with D11 = 1 there is none from w to z
    plant = control.ss([[-1.0]], [[1.0, 1.0]], [[1.0], [1.0]], [[1.0, 1.0], [1.0, 0.5]])
    found = flexctl.synthesise(plant, _table(-2.0), "h2")
    assert found.norm < 1e-6
    with pytest.raises(DesignError, match="H2 norm is infinite"):
        flexctl.synthesise(plant, _table(-1.0), "h2")


def crossed_plant(through):
    """Plant in which w goes to y2 and z comes from u1, with a feedthrough (2, 2) from u to y."""
    D = np.zeros((3, 3))
    D[0, 1] = D[2, 0] = 1.0
    D[1:, 1:] = through
    return control.ss([[-1.0]], [[1.0, 1.0, 1.0]], [[1.0]] * 3, D)


CROSSED = [[0.0, 1.0], [1.0, 0.0]]


@pytest.mark.parametrize("bounds", [None, {"a": (0.1, 0.2), "b": (0.1, 0.2)}])
def test_a_feedthrough_by_way_of_the_plant_s_own_is_seen(bounds):
    # D12 K D21 = 0, but K (I - D22 K)^-1 has b a/(1 - a b) beside its diagonal
    apart = flexctl.ControllerStructure.table([["a", 0.0], [0.0, "b"]], bounds=bounds)
    with pytest.raises(DesignError, match="and the plant has one from u to y"):
        flexctl.synthesise(crossed_plant(CROSSED), apart, "h2")


def test_a_feedthrough_that_no_way_leads_round_is_none():
    apart = flexctl.ControllerStructure.table([["a", 0.0], [0.0, "b"]])
    found = flexctl.synthesise(crossed_plant([[0.5, 0.0], [0.0, 0.2]]), apart, "h2")

    assert found.closed_loop.D == 0
    assert found.norm == pytest.approx(control.norm(found.closed_loop, 2), rel=1e-6)


def test_a_loop_with_a_feedthrough_is_no_answer_of_the_h2_norm(monkeypatch):
    monkeypatch.setattr(synthesising, "forbid_feedthrough", lambda _, structure: structure)
    apart = flexctl.ControllerStructure.table([["a", 0.0], [0.0, "b"]])
    with pytest.raises(DesignError, match="the loop that was found has a feedthrough"):
        flexctl.synthesise(crossed_plant(CROSSED), apart, "h2", start=[[0.3, 0.0], [0.0, 0.4]])


def _table(Dk):
    return flexctl.ControllerStructure.table([[Dk, "c"], ["b", "a"]], 1)


def test_the_channel_of_a_feedthrough_that_stays_is_named():
    # K takes away the large one of the first channel
    D = np.array([[10.0, 0.0, 1.0], [0.0, 0.1, 0.0], [1.0, 0.0, 0.0]])
    plant = control.ss([[-1.0]], [[1.0, 0.0, 1.0]], [[1.0], [0.0], [1.0]], D)
    with pytest.raises(DesignError, match="from input w2 to output z2"):
        flexctl.synthesise(plant, [["k"]], "h2")
