"""Laws with states of their own, here a lag behind a PD loop: rest, runs, linear models, names."""

from dataclasses import replace

import casadi as ca
import numpy as np
import pytest

import flexctl.control.controller_design as making
from flexctl.control.laws import Recipe, law_function, rigid_gravity_torque
from flexctl.loop.equilibrium import find_loop_equilibrium, set_integrals
from flexctl.loop.linear import linearise_loop
from flexctl.simulation.integrators import Tolerance
from flexctl.simulation.simulation import simulate

LAG = 60.0  # rad/s
EARTH = (0.0, -9.81, 0.0)


@pytest.fixture(autouse=True)
def _lagging(monkeypatch):
    """Put a lag between every law and the joints: z' = LAG (tau - z), the torque is z."""
    plain = making.law_of_method

    def lagged(plant, design, reference):
        parts = plain(plant, design, reference)
        m, inner = plant.m, parts.law

        def write(plant, signals):
            given = replace(signals, z=signals.integral, n_own=0)
            own = inner.write(plant, given)
            known = [signals.s, signals.integral, signals.q_d, signals.v_d, signals.a_d]
            tau, summed = own.call([*known, signals.q, signals.v, *signals.inputs[7:]])
            moved = signals.numbers["lag"] * (tau - signals.own)
            return law_function(signals.inputs, signals.own, ca.vertcat(summed, moved))

        recipe = Recipe(
            write=write,
            numbers={**inner.numbers, "lag": np.array([LAG])},
            integral=inner.integral,
            n_own=m,
            structure=("lagged", inner.key(plant)),
        )
        names = tuple(f"lag of joint{j + 1}" for j in range(m))
        return replace(parts, law=recipe, n_state=parts.n_state + m, own_states=names)

    monkeypatch.setattr(making, "law_of_method", lagged)


def close(make, integral=None, **tables):
    gains = {"Gp": [60.0, 30.0], "Gv": [12.0, 6.0]} | ({"Gi": integral} if integral else {})
    start, end = [-1.0, 0.4], tables.pop("end", [-0.6, 0.8])
    tables.setdefault("duration", 0.3)
    design = make["design"](start, end, "joint-pd", gains=gains, **tables)
    return make["close"](make["two-link"](EARTH, EI=40.0), design)


def test_integrals_come_first_then_own_states_then_the_estimate(make):
    tables = {"loop": {"measures": ["encoder", "tachometer"]}}
    design = make["design"](
        [-1.0, 0.4], [-0.6, 0.8], gains={"Gp": [60.0], "Gv": [12.0], "Gi": [5.0]}, **tables
    )
    controller = make["close"](make["rigid"](), design).controller
    assert (controller.n_integral, controller.n_own, controller.n_estimated) == (2, 2, 2)
    assert controller.n_state == 2 + 2 + 4
    rng = np.random.default_rng(0)
    z, x = rng.normal(size=8), [rng.normal(size=2) for _ in range(5)]
    tau, z_rate = (np.array(part).ravel() for part in controller.law(0.0, z, *x))
    np.testing.assert_allclose(tau, z[2:4])
    np.testing.assert_allclose(z_rate[:2], x[3] - x[0], atol=1e-12)  # of measured positions
    np.testing.assert_allclose(
        z_rate[4:6],
        z[6:] + controller.observer.gain[:2] @ (np.concatenate([x[3], x[4]]) - z[4:]),
        atol=1e-9,
    )


@pytest.mark.slow_but("True")
@pytest.mark.parametrize("observed", [False, True])
def test_a_run_begins_without_a_bump(make, observed):
    # a rigid arm: gravity is fed forward exactly, so that it must not move at all
    loop = {"measures": ["encoder", "tachometer"]} if observed else {}
    method, start = "decoupling" if observed else "joint-pd", [-1.0, 0.4]
    design = make["design"](start, start, method, loop=loop, duration=0.3)
    closed = make["close"](make["rigid"](EARTH), design)
    run = simulate(closed, times=np.linspace(0, 0.3, 31))
    np.testing.assert_allclose(run.q, np.array(start)[:, None] * np.ones(31), atol=1e-9)
    assert np.abs(run.z[:2]).min() > 0.1  # the lag holds the arm


@pytest.mark.slow
@pytest.mark.parametrize("compiler", ["", "none"])
@pytest.mark.parametrize(
    "integrator", ["auto", "explicit", "esdirk", "midpoint", "rk4", "bdf", "adams"]
)
def test_runs_are_those_of_scipy(make, stepper, monkeypatch, integrator, compiler):
    if compiler == "none" and integrator in ("rk4", "auto", "midpoint"):
        pytest.skip("needs a compiler, or is explicit")
    monkeypatch.setenv("FLEXCTL_CC", compiler)
    loop, times = close(make, integral=[20.0, 10.0]), np.array([0.0, 0.1, 0.2, 0.35])
    fixed = integrator in ("rk4", "midpoint")
    options = {"step": 2e-5} if fixed else {"tolerance": Tolerance.of(1e-9)}
    if fixed:
        loop = close(make, integral=[20.0, 10.0], basis={"kind": "modes", "order": 1})
    run = simulate(loop, times=times, integrator=integrator, **options)
    expected = stepper(loop).continuous(times)
    np.testing.assert_allclose(np.vstack([run.q, run.v, run.z]), expected, rtol=1e-5, atol=1e-6)


def test_own_states_rest_where_the_loop_does(make):
    loop = close(make, integral=[20.0, 10.0])
    rest = find_loop_equilibrium(loop, np.array([-0.6, 0.8]), 0.0)
    np.testing.assert_allclose(rest.offset, 0, atol=1e-10)  # by the integrals
    np.testing.assert_allclose(rest.z[2:], rest.tau, rtol=1e-10)
    force = loop.truth.gravity(rest.q) + loop.truth.elastic_force(rest.q)
    force -= loop.truth.B @ rest.tau
    np.testing.assert_allclose(force, 0, atol=1e-9)


def test_integrals_are_set_behind_own_states_too(make):
    loop = close(make, integral=[20.0, 10.0])
    rest = find_loop_equilibrium(loop, np.array([-0.6, 0.8]), 0.0)
    moved = replace(rest, z=rest.z - np.array([0.1, 0.2, 3.0, -1.0]))
    np.testing.assert_allclose(set_integrals(loop, moved, 0.0).z, rest.z, rtol=1e-8)


def test_the_linear_loop_is_that_of_the_lag_written_down(make):
    loop = close(make)
    linear = linearise_loop(loop, np.array([-0.6, 0.8]), 0.0)
    n, plant = loop.truth.n, linear.plant
    K = np.zeros((2, 2 * n))
    K[:, :2], K[:, n : n + 2] = -np.diag([60.0, 30.0]), -np.diag([12.0, 6.0])
    A = np.block([[plant.A_state, plant.B_state], [LAG * K, -LAG * np.eye(2)]])
    expected = np.sort_complex(np.linalg.eigvals(A))
    np.testing.assert_allclose(np.sort_complex(linear.poles), expected, rtol=1e-6)


def test_own_states_begin_at_the_torque_of_the_plain_law(make):
    controller = close(make).controller
    plant, start = controller.plant, controller.reference.start
    z = controller.initial_state(plant.straight(start), np.zeros(plant.n))
    c = ca.Function("c", [plant.equations.free], [rigid_gravity_torque(plant, ca.SX(start))])
    np.testing.assert_allclose(z, np.array(c(plant.numbers)).ravel(), rtol=1e-12)
