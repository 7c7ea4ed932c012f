"""Joints that slip and stick: closed forms between events, all states enumerated, limits."""

import ctypes
import dataclasses
import itertools

import numpy as np
import pytest

from flexctl.errors import InputError, RunError
from flexctl.plant import cached_library
from flexctl.simulation import c_driver
from flexctl.simulation.integrators import Tolerance
from flexctl.simulation.many import simulate_many
from flexctl.simulation.simulation import simulate
from flexctl.simulation.stick_slip import Contact, _bounded
from tests.stick_and_slip import stick_and_slip

MASS = 2.0
TOLERANCE = Tolerance.of(1e-9)


@pytest.fixture(scope="module")
def slider(make):
    """slider(friction, end, kind, ...): a sliding mass under a joint PD or PID."""

    def build(friction, end=0.1, kind="cycloid", method="joint-pd", gravity=0.0, **tables):
        link = {"joint": "prismatic", "hub": {"mass": MASS}, "friction": friction}
        start = [end] if kind == "setpoint" else [0.0]
        tables = {"gains": {"Gp": [50.0], "Gv": [10.0]}} | tables
        design = make["design"](start, [end], method, kind=kind, **tables)
        return make["close"](make["arm"]([link], (0.0, 0.0, gravity)), design)

    return build


def test_a_mass_on_a_belt_sticks_and_slips_as_its_closed_form_says(slider):
    # see test_friction.py; friction drops to F_c within v_S, 1e-5 of the belt's rate
    k, V, F_s, F_c = 50.0, 0.1, 1.0, 0.6
    friction = {"model": "events", "coulomb": F_c, "static": F_s, "stribeck_velocity": 1e-6}
    gains = {"Gp": [k], "Gv": [1e-6]}
    loop = slider(friction, V, "spin-up", gains=gains, loop={"duration": 5.5}, duration=0.2)
    times = np.linspace(0.0, 5.5, 11001)
    run = simulate(loop, times=times, tolerance=TOLERANCE)
    w, D = np.sqrt(k / MASS), (F_s - F_c) / k
    period = (2 * np.pi - 2 * np.arctan(w * D / V)) / w + 2 * D / V
    slips = run.v[0] > V / 100
    begins = times[1:][slips[1:] & ~slips[:-1]]
    assert np.diff(begins)[1:] == pytest.approx(period, abs=1e-3)  # two samples
    late, swing = times > begins[1], np.hypot(k * V / w, F_s - F_c)
    assert run.tau[0, late].max() == pytest.approx(F_c + swing, rel=1e-3)
    assert run.tau[0, late].min() == pytest.approx(F_c - swing, rel=2e-3)
    stuck = ~slips & (times > begins[1])
    assert (np.abs(run.v[0, stuck]) < V / 100).all()
    assert (run.v[0, stuck] == 0.0).mean() > 0.9  # it does not creep
    assert run.energy.imbalance < 1e-6


@pytest.mark.parametrize("integrator", ["esdirk", "explicit"])
def test_runs_in_c_and_by_scipy_agree(slider, monkeypatch, integrator):
    friction = {"model": "events", "coulomb": 0.6, "static": 0.8, "stribeck_velocity": 0.01}
    loop, times = slider(friction), np.linspace(0.05, 1.0, 20)
    in_c = simulate(loop, times=times, tolerance=TOLERANCE)
    monkeypatch.setenv("FLEXCTL_CC", "none")
    run = simulate(loop, times=times, tolerance=TOLERANCE, integrator=integrator)
    assert "between the events of friction" in run.integrator
    np.testing.assert_allclose(run.q, in_c.q, atol=1e-7)
    np.testing.assert_allclose(run.v, in_c.v, atol=1e-6)
    assert (run.v[0, -3:] == 0.0).all()
    assert (in_c.v[0, -3:] == 0.0).all()


def test_a_stretch_between_events_ends_at_the_limit_of_steps_by_scipy_too(slider, monkeypatch):
    monkeypatch.setenv("FLEXCTL_CC", "none")
    calls, rate = list[float](), Contact.rate
    monkeypatch.setattr(Contact, "rate", lambda own, t, x: calls.append(t) or rate(own, t, x))
    loop = slider({"model": "events", "coulomb": 0.1})
    tight = dataclasses.replace(TOLERANCE, max_steps=5)

    with pytest.raises(RunError, match="the limit of 5 steps was reached"):
        simulate(loop, times=np.array([1.0]), tolerance=tight)

    assert len(calls) < 100


def test_pid_hunts_as_the_closed_form_of_its_sticks_says(slider):
    gains = {"Gp": [50.0], "Gv": [10.0], "Gi": [40.0]}
    friction = {"model": "events", "coulomb": 0.6, "static": 1.0, "stribeck_velocity": 1e-6}
    loop = slider(friction, kind="setpoint", gains=gains, loop={"duration": 120.0})
    start = (np.array([0.095]), np.zeros(1))
    times = np.linspace(60.0, 120.0, 2001)
    run = simulate(loop, times=times, start=start, tolerance=Tolerance.of(1e-8))
    t, x = stick_and_slip(1.0, 0.6, 120.0)
    assert np.ptp(run.q[0]) == pytest.approx(np.ptp(x[t > 60.0]), rel=2e-3)


@pytest.mark.parametrize("seed", range(8))
def test_the_bounded_problem_is_solved_as_all_states_enumerated(seed):
    rng = np.random.default_rng(seed)
    k = 3
    X = rng.normal(size=(k, k))
    W, a0, F = X @ X.T + 0.1 * np.eye(k), rng.normal(size=k) * 2, rng.uniform(0.2, 1.5, k)
    found = []
    for ways in map(np.array, itertools.product((-1, 0, 1), repeat=k)):
        still = ways == 0
        forces = ways * F
        if still.any():
            rest = a0[still] - W[np.ix_(still, ~still)] @ forces[~still]
            forces[still] = np.linalg.solve(W[np.ix_(still, still)], rest)
        a = a0 - W @ forces
        if (np.abs(forces[still]) <= F[still]).all() and (ways * a >= 0)[~still].all():
            found.append(forces)
    assert len(found) == 1
    np.testing.assert_allclose(_bounded(W, a0, F), found[0], atol=1e-9)


_HARNESS = """#include "driver.c"
void bounded(double *W, double *a0, double *F, double *x) {
  casadi_int rows[] = {0, 1, 2, 3}, pivot[4];
  double way[4] = {0}, N[16], column[4], f[4];
  const problem_t p = {.sticking = rows};
  state_t s = {.p = &p, .n = 4, .n_s = 4, .way = way, .held_by = F, .W = W, .holding = x, .N = N,
               .pivot = pivot, .column = column, .f = f};
  bound_forces(&s, a0);
}
"""


@pytest.mark.parametrize("condition", [1e2, 1e6])
@pytest.mark.parametrize("seed", range(4))
def test_the_bounded_problem_is_solved_in_c_too_where_joints_hardly_move_together(seed, condition):
    def generate(folder):
        c_driver._copy_sources(folder)
        (folder / "harness.c").write_text(_HARNESS)
        return folder / "harness.c"

    library = cached_library(f"bounded {c_driver._sources_digest()} {_HARNESS}", generate)
    if library is None:
        pytest.skip("no C compiler")
    rng = np.random.default_rng(seed)
    Q = np.linalg.qr(rng.normal(size=(4, 4)))[0]
    W = Q @ np.diag(np.geomspace(1.0, condition, 4)) @ Q.T
    F = rng.uniform(0.2, 1.5, 4)
    share = rng.uniform(-0.9, 0.9, 4)
    share[3] += 2 * (seed % 2)
    a0, found = W @ (share * F), np.zeros(4)

    arrays = [np.asfortranarray((W + W.T) / 2), a0, F, found]
    ctypes.CDLL(str(library)).bounded(*(x.ctypes.data_as(ctypes.c_void_p) for x in arrays))

    np.testing.assert_allclose(found, _bounded(W, a0, F), atol=1e-8)


@pytest.mark.slow
def test_smoothed_friction_tends_to_it(slider):
    times = np.linspace(0.0, 1.0, 41)
    by_events = simulate(
        slider({"model": "events", "coulomb": 0.6}), times=times, tolerance=TOLERANCE
    ).q
    off = [
        np.abs(
            simulate(
                slider({"coulomb": 0.6, "smoothing_velocity": v}), times=times, tolerance=TOLERANCE
            ).q
            - by_events
        ).max()
        for v in (1e-3, 1e-4, 1e-5)
    ]
    # it creeps at about v_s for the time that it should stick: of first order in v_s
    assert off[0] > 7 * off[1] > 49 * off[2]
    assert off[2] < 1e-5


@pytest.mark.slow
def test_bristles_tend_to_it(slider):
    times = np.linspace(0.0, 1.0, 41)
    friction = {"coulomb": 0.6, "smoothing_velocity": 1e-6}
    by_events = simulate(
        slider({"model": "events", "coulomb": 0.6}), times=times, tolerance=TOLERANCE
    ).q
    off = [
        np.abs(
            simulate(
                slider(friction | {"model": "lugre", "sigma0": s, "sigma1": np.sqrt(s)}),
                times=times,
                tolerance=Tolerance.of(1e-8),
            ).q
            - by_events
        ).max()
        for s in (1e3, 1e5)
    ]
    assert off[1] < 0.1 * off[0]
    assert off[1] < 3e-4  # they bend by F_c/sigma0 = 6e-6 and swing


@pytest.mark.slow
def test_friction_holds_a_weight_for_ever(slider):
    gains = {"Gp": [1e-9], "Gv": [1e-9]}
    loop = slider(
        {"model": "events", "coulomb": 3.0},
        0.0,
        "setpoint",
        gravity=-0.5,
        gains=gains,
        loop={"duration": 2.0},
    )
    held = loop.at({"truth.gravity": [0.0, 0.0, -1.9]})  # 2 (1.9 - 0.5) N are not fed forward
    start = (np.zeros(1), np.zeros(1))
    run = simulate(held, times=np.array([2.0]), start=start)
    assert run.q[0, 0] == 0.0
    falls = loop.at({"truth.gravity": [0.0, 0.0, -2.1]})
    run = simulate(falls, times=np.array([1.0]), start=start)
    assert run.q[0, 0] == pytest.approx(-(2 * 1.6 - 3.0) / MASS / 2, rel=1e-6)


def test_a_thrown_mass_stops_after_its_braking_distance(slider):
    gains = {"Gp": [1e-9], "Gv": [1e-9]}
    loop = slider(
        {"model": "events", "coulomb": 3.0}, 0.0, "setpoint", gains=gains, loop={"duration": 2.0}
    )
    run = simulate(loop, times=np.array([0.5, 2.0]), start=(np.zeros(1), np.array([1.2])))
    t = np.array([0.5, 1.2 * MASS / 3])  # it stops after 0.8 s
    np.testing.assert_allclose(run.q[0], 1.2 * t - 1.5 * t**2 / 2, atol=1e-8)
    assert run.v[0, 1] == 0.0
    assert run.energy.dissipated[-1] == pytest.approx(MASS * 1.2**2 / 2, rel=1e-8)


@pytest.mark.slow
def test_two_joints_share_the_work_of_a_two_link_arm(make):
    line = {"joint": "revolute", "length": 0.5, "mass_per_length": 1.0, "dh": {"a": 0.5}}
    forces = (1.5, 0.4)

    def loop(**friction):
        links = [line | {"friction": {"coulomb": F} | friction} for F in forces]
        design = make["design"]([0.1, 0.2], [0.8, -0.3], gains={"Gp": [100.0], "Gv": [20.0]})
        return make["close"](make["arm"](links, (0.0, -9.81, 0.0)), design)

    times = np.linspace(0, 1.0, 21)
    run = simulate(loop(model="events"), times=times, tolerance=TOLERANCE)
    near = simulate(loop(smoothing_velocity=1e-5), times=times, tolerance=TOLERANCE)
    np.testing.assert_allclose(run.q, near.q, atol=5e-5)
    assert run.energy.imbalance < 1e-7
    assert (run.v[:, -1] == 0.0).all()


@pytest.mark.slow
@pytest.mark.parametrize("side", ["motor", "link"])
def test_a_flexible_joint_slips_and_sticks_on_either_side(make, side):
    unit = 50.0 if side == "motor" else 1.0
    spring = {"rotor_inertia": 1e-4, "gear": 50.0, "stiffness": 200.0, "damping": 0.5}
    link = {"joint": "revolute", "hub": {"inertia": [0.0, 0.0, 0.4]}, "flexible_joint": spring}

    def loop(**friction):
        own = {"coulomb": 2.0 / unit, "viscous": 0.3 / unit**2, "side": side} | friction
        design = make["design"]([0.0], [1.0], "joint-pd", gains={"Gp": [100.0], "Gv": [10.0]})
        return make["close"](make["arm"]([link | {"friction": own}]), design)

    times = np.linspace(0, 0.8, 9)
    run = simulate(loop(model="events"), times=times, tolerance=TOLERANCE)
    near = simulate(loop(smoothing_velocity=1e-4 * unit), times=times, tolerance=TOLERANCE)
    np.testing.assert_allclose(run.q, near.q, atol=2e-4)
    assert run.energy.imbalance < 1e-7


@pytest.mark.parametrize(
    "more",
    [{"sample_time": 0.01, "delay": 0.002}, {"measures": ["encoder"]}],
    ids=["sampled", "observer"],
)
def test_laws_of_all_kinds_run_by_events(slider, more):
    gains = {"Gp": [25.0], "Gv": [5.0]}
    friction = {"model": "events", "coulomb": 0.6, "static": 0.8, "stribeck_velocity": 0.01}
    loop = slider(friction, method="decoupling", gains=gains, loop={"duration": 1.5, **more})
    run = simulate(loop, tolerance=Tolerance.of(1e-8))
    assert run.energy.imbalance < 1e-5
    assert run.v[0, -1] == 0.0
    assert abs(run.q[0, -1] - 0.1) < 0.8 / 50


def test_many_loops_run_one_by_one(slider):
    loop = slider({"model": "events", "coulomb": 0.6})
    times = np.array([0.4, 1.0])
    several = [loop.at({"link1.friction.coulomb": F}) for F in (0.3, 0.6)]
    runs = simulate_many(several, times=times)
    for own, run in zip(several, runs, strict=True):
        np.testing.assert_allclose(run.q, simulate(own, times=times).q, atol=1e-12)


@pytest.mark.parametrize("integrator", ["bdf", "midpoint", "adams"])
def test_integrators_without_events_are_refused(slider, integrator):
    step = 1e-3 if integrator == "midpoint" else None
    with pytest.raises(InputError, match="expected one of auto, esdirk, explicit, as joints"):
        simulate(slider({"model": "events", "coulomb": 0.6}), integrator=integrator, step=step)


def test_what_is_not_smoothed_has_no_smoothing_velocity(slider):
    with pytest.raises(ValueError, match="smoothing_velocity: expected no such key, as model is"):
        slider({"model": "events", "coulomb": 0.6, "smoothing_velocity": 1e-3})


@pytest.mark.parametrize("integrator", ["auto", "esdirk"])
def test_integral_action_creeps_to_rest_without_end_and_without_chatter(slider, integrator):
    # under Coulomb friction alone the joint never stops: its error decays as the slowest eigenvalue
    # of the loop, whose friction is constant; below the tolerance rounding decides its direction
    k, d, i, p = 50.0, 10.0, 40.0, 200.0
    gains = {"Gp": [k], "Gv": [d], "Gi": [i], "derivative_filter": p}
    friction = {"model": "events", "coulomb": 0.6}
    loop = slider(friction, method="pid", gains=gains, loop={"duration": 40.0})
    run = simulate(loop, times=np.linspace(0.0, 40.0, 4001), integrator=integrator)

    # M s^3 + (d p/(s + p)) s^2 + k s + i = 0
    roots = np.roots([MASS, MASS * p, d * p + k, k * p + i, i * p])
    slowest = roots.real.max()
    error = np.abs(run.q[0] - 0.1)
    assert error[1600] / error[800] == pytest.approx(np.exp(8 * slowest), rel=1e-3)
    assert error[-1] < 1e-8
    assert abs(run.tau[0, -1]) == pytest.approx(0.6, rel=1e-6)
    assert run.steps < 5000
