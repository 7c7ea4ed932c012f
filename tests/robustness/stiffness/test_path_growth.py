"""Growth over a motion against matrix exponentials of frozen loops, and against nonlinear runs."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.linalg

from flexctl.control import design_on
from flexctl.errors import ComputationError
from flexctl.loop.closed_loop import close_around
from flexctl.loop.linear import linearise_loop
from flexctl.loop.linear_loop import sampled_loop
from flexctl.model.lookup import load_design, load_model
from flexctl.model.record import BasisChoice
from flexctl.plant.plant import assemble_plant
from flexctl.robustness.stiffness import path_growth
from flexctl.robustness.stiffness.path_growth import find_path_growth
from flexctl.robustness.stiffness.pose_loop import Case
from flexctl.simulation.integrators import Tolerance
from flexctl.simulation.simulation import simulate
from tests.arms import wrong_plant

ERROR = 0.2
H = 0.01  # s, of a slow sampled law
ONE = BasisChoice(kind="modes", order=1)


def single(make, method="decoupling", *, sample_time=None, **tables):
    """A turning link: the loop is the same at every pose, so that all can be told by hand."""
    loop = {"duration": 6.0} | ({"sample_time": sample_time} if sample_time else {})
    design = make["design"]([0.0], [0.6], method, duration=5.0, loop=loop, **tables)
    return Case.of(make["single"](damping=0.03, hub=1.0), design, truth_basis=ONE)


def frozen(closed, error):
    joints = closed.controller.reference.final
    return linearise_loop(closed.at({"stiffness_error": error}), joints, 0.0)


def motion_to_come(loop, T):
    """P (N, N): integral of e^{-2 t/T} v' M v that follows a state, as one linear system."""
    A, n = loop.A + loop.B @ loop.K - np.eye(len(loop.A)) / T, len(loop.plant.M)
    eye, Q = np.eye(len(A)), np.zeros_like(A)
    Q[n : 2 * n, n : 2 * n] = loop.plant.M
    both = np.kron(A.T, eye) + np.kron(eye, A.T)
    return np.linalg.solve(both, -Q.ravel()).reshape(A.shape)


def test_of_a_loop_that_does_not_change_it_is_the_largest_singular_value(make):
    closed = single(make).close()
    T, wrong = closed.controller.reference.duration, frozen(closed, ERROR)
    P = motion_to_come(frozen(closed, 0.0), T)
    R = scipy.linalg.cholesky(P)
    found = find_path_growth(closed, ERROR)

    def growth(t):
        Phi = scipy.linalg.expm((wrong.A + wrong.B @ wrong.K) * t)
        return np.linalg.norm(R @ Phi @ np.linalg.inv(R), 2)

    largest = max(growth(t) for t in np.linspace(0, T, 11))
    assert found.factor == pytest.approx(largest, rel=1e-4)
    assert growth(found.end - found.start) == pytest.approx(largest, rel=1e-4)
    assert found.factor > 3
    assert (found.error, found.duration) == (ERROR, T)


def test_units_of_the_coordinates_do_not_matter(make):
    loop, units = frozen(single(make).close(), 0.0), np.array([1.0, 1e3])
    plant = loop.plant
    M, D, K = (X * np.outer(units, units) for X in (plant.M, plant.D, plant.K))
    other = replace(
        loop,
        plant=replace(plant, M=M, D=D, K=K, K_elastic=K, B=units[:, None] * plant.B),
        feedback=loop.feedback * np.tile(units, 2),
    )
    x = np.array([0.3, -0.02, 0.5, 0.1])
    own, same = (path_growth._norm(one, 0.5) for one in (loop, other))
    assert np.linalg.norm(same @ (x / np.tile(units, 2))) == pytest.approx(
        np.linalg.norm(own @ x), rel=1e-9
    )


def test_without_an_error_a_loop_that_does_not_change_hardly_grows(make):
    # |x(t)| <= e^{t/T} |x|, and a loop that decays stays below
    assert find_path_growth(single(make).close(), 0.0).factor == pytest.approx(1.0, abs=1e-6)


def test_a_mode_that_nothing_damps_is_measured_by_its_energy(make):
    # free joint, link undamped, no feedback: P = M-energy / (2/T), which stays as it is
    loop = frozen(single(make).close(), 0.0)
    n, plant = len(loop.plant.M), loop.plant
    K = plant.K + np.diag([5e4, 0.0])  # a spring holds the joint
    still = replace(plant, K=K, K_elastic=K, D=np.zeros((n, n)))
    free = replace(loop, plant=still, feedback=np.zeros_like(loop.feedback))
    R, Phi = path_growth._norm(free, 2.0), scipy.linalg.expm(0.37 * free.plant.A_state)
    assert np.linalg.norm(R @ Phi @ np.linalg.inv(R), 2) == pytest.approx(1.0, abs=0.05)
    energy = scipy.linalg.block_diag(K, plant.M) / 2
    x = np.array([0.02, 0.01, -0.3, 0.5])
    assert x @ R.T @ R @ x == pytest.approx(2.0 / 2 * x @ energy @ x, rel=0.2)


def test_a_law_that_is_sampled_often_is_as_a_continuous_one(make):
    fast = find_path_growth(single(make, sample_time=1e-3).close(), ERROR)
    continuous = find_path_growth(single(make).close(), ERROR)

    assert fast.factor == pytest.approx(continuous.factor, rel=0.02)


def test_late_readings_do_not_let_disturbances_of_the_arm_grow_without_bound(make):
    # some estimates move nothing while the stiffness is right: P is singular over all states
    late = [{"kind": "encoder", "noise": 1e-5, "delay": H}]
    late += [{"kind": "gauge", "xi": 0.1, "noise": 1e-3, "delay": H}]
    closed = single(make, sample_time=H, instruments=late, observer={}).close()
    found = find_path_growth(closed, ERROR)
    right, wrong = frozen(closed, 0.0), frozen(closed, ERROR)
    T, n, M = 5.0, 2 * len(right.plant.M), right.plant.M
    A_0, A = (sampled_loop(one, H, 0.0) for one in (right, wrong))
    P, step = np.zeros_like(A), np.exp(-H / T) * A_0
    Q = scipy.linalg.block_diag(0 * M, H * M, np.zeros((len(A) - n, len(A) - n)))
    for _ in range(8000):
        P = step.T @ P @ step + Q
    before = scipy.linalg.cholesky(P[:n, :n])
    growth = [1.0]
    for t in np.linspace(0, T, 11)[1:]:
        Phi = np.linalg.matrix_power(A, round(t / H))[:, :n] @ np.linalg.inv(before)
        growth.append(np.sqrt(np.linalg.eigvalsh(Phi.T @ P @ Phi)[-1]))
    assert np.linalg.cond(P) > 1e16
    assert found.factor == pytest.approx(max(growth), rel=1e-6)
    assert found.factor > 1.05


def test_a_loop_that_grows_by_itself_has_none(make):
    light = single(make).changed(lambda _arm: make["single"](damping=0.03))
    with pytest.raises(ComputationError, match="without an error"):
        find_path_growth(light.close(), ERROR)


def disturbed(case, closed, error, start, *, compiled, amplitude=1e-6):
    """(k, 2n) difference of two nonlinear runs with the wrong stiffness, one disturbed."""
    basis = case.setup.design_basis
    plant = wrong_plant(case.designed_for, basis, error, interpreted=not compiled)
    controller = design_on(plant, case.design)
    truth = assemble_plant(case.setup.true_arm, case.truth.basis, interpreted=not compiled)
    loop, n = close_around(controller, truth), truth.n
    times = path_growth.motion_poses(controller.reference, path_growth.N_POSES)[0]
    q0, start = closed.truth.straight(controller.reference.start), amplitude * start
    runs = [
        simulate(
            loop,
            times=times,
            duration=times[-1],
            start=(q0 + dx[:n], dx[n:]),
            tolerance=Tolerance.of(1e-10),
        )
        for dx in (np.zeros(2 * n), start)
    ]
    states = [np.vstack([run.q, run.v]).T for run in runs]
    return (states[1] - states[0]) / amplitude


def grows_in_runs(case, error, closed, *, compiled=False):
    """Growth by the linear time-varying loop and by runs, of the worst disturbance at the start."""
    times, poses = path_growth.motion_poses(closed.controller.reference, path_growth.N_POSES)
    mistaken = closed.at({"stiffness_error": error})
    right = [linearise_loop(closed, joints, 0.0) for joints in poses]
    wrong = [linearise_loop(mistaken, joints, 0.0) for joints in poses]
    first, last = (path_growth._norm(loop, times[-1]) for loop in (right[0], right[-1]))
    steps = path_growth._transitions(times, wrong, 8)
    Phi = path_growth._product(steps, len(first))
    worst = np.linalg.solve(first, np.linalg.svd(last @ Phi @ np.linalg.inv(first))[2][0])
    worst /= np.abs(worst[: case.truth.n]).max()
    run = disturbed(case, closed, error, worst, compiled=compiled)
    size = np.linalg.norm(first @ worst)
    sizes = [np.linalg.norm(last @ x) / size for x in (Phi @ worst, run[-1])]
    return find_path_growth(closed, error), *sizes


@pytest.mark.slow
def test_a_nonlinear_run_with_the_wrong_stiffness_grows_as_it_says(make):
    case = single(make)
    found, linear, run = grows_in_runs(case, ERROR, case.close())

    assert linear == pytest.approx(found.factor, rel=0.02)
    assert run == pytest.approx(linear, rel=0.02)


@pytest.mark.slow  # nonlinear runs of the catalogue's arms, in which the arm moves fast
@pytest.mark.parametrize(
    ("model", "design", "error", "off"),
    [("theodore-ghosal-rrp", "rrp-stiff", 0.1, 0.12)],  # what moves fast is not frozen
)
def test_it_is_that_of_nonlinear_runs_of_arms_in_motion(model, design, error, off):
    case = Case.of(load_model(model), load_design(design))
    found, linear, run = grows_in_runs(case, error, closed := case.close(), compiled=True)

    assert run == pytest.approx(linear, rel=off)
    assert linear <= found.factor * 1.02
    finer = find_path_growth(closed, error, 31)
    assert found.factor == pytest.approx(finer.factor, rel=0.1)
