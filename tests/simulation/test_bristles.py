"""Friction with bristles: beside the model written out, its limits, its energy."""

import itertools

import numpy as np
import pytest
import scipy.integrate

from flexctl.errors import InputError
from flexctl.model import Friction
from flexctl.plant.plant import assemble_plant
from flexctl.simulation.integrators import Tolerance
from flexctl.simulation.simulation import simulate
from flexctl.simulation.step_size import fastest_friction

MASS, K, C = 2.0, 50.0, 10.0
RUBS = {"viscous": 0.5, "coulomb": 0.6, "static": 1.0, "stribeck_velocity": 0.01}
RUBS |= {"smoothing_velocity": 1e-4}
BRISTLES = {"model": "lugre", "sigma0": 1e4, "sigma1": 20.0}
TOLERANCE = Tolerance.of(1e-8)


@pytest.fixture(scope="module")
def slider(make):
    """slider(friction, ...): a sliding mass under a PD loop."""

    def build(friction, kind="cycloid", method="joint-pd", **tables):
        link = {"joint": "prismatic", "hub": {"mass": MASS}, "friction": friction}
        tables = {"gains": {"Gp": [K], "Gv": [C]}, "loop": {"duration": 1.5}} | tables
        design = make["design"]([0.0], [0.1], method, kind=kind, **tables)
        return make["close"](make["arm"]([link]), design)

    return build


@pytest.fixture(scope="module")
def bristled(slider):
    return slider(RUBS | BRISTLES)


TIMES = np.linspace(0.02, 1.5, 75)


@pytest.fixture(scope="module")
def expected(bristled):
    """The motion of the model written out, at `TIMES`."""
    return witness(bristled, TIMES)


def witness(loop, times, sigma0=1e4, sigma1=20.0):
    """Positions, rates, bristles (3, N) by SciPy's Radau on the model written out."""
    sample = loop.controller.reference.sample

    def rate(t, x):
        r, r_rate, _ = (part[0, 0] for part in sample(np.array([t])))
        level = 0.6 + 0.4 * np.exp(-((x[1] / 0.01) ** 2))
        bent = x[1] - sigma0 * np.hypot(x[1], 1e-4) / level * x[2]
        force = sigma0 * x[2] + sigma1 * bent + 0.5 * x[1]
        return [x[1], (-K * (x[0] - r) - C * (x[1] - r_rate) - force) / MASS, bent]

    x, found = np.zeros(3), []
    for a, b in itertools.pairwise([0.0, 0.5, times[-1]]):
        own = times[(times > a) & (times <= b)]
        done = scipy.integrate.solve_ivp(rate, (a, b), x, "Radau", own, rtol=1e-8, atol=1e-12)
        found.append(done.y)
        x = done.y[:, -1]
    return np.hstack(found)


@pytest.mark.slow
@pytest.mark.parametrize("integrator", ["auto", "bdf"])
def test_a_run_agrees_with_scipy(bristled, expected, integrator):
    run = simulate(bristled, times=TIMES, integrator=integrator, tolerance=TOLERANCE)
    np.testing.assert_allclose(run.q[0], expected[0], atol=1e-7)
    np.testing.assert_allclose(run.v[0], expected[1], atol=2e-6)
    assert run.energy.imbalance < 1e-5


@pytest.mark.slow
def test_a_run_without_compiler_is_the_same(bristled, monkeypatch):
    times = np.array([0.3, 1.5])
    compiled = simulate(bristled, times=times, tolerance=TOLERANCE)
    monkeypatch.setenv("FLEXCTL_CC", "none")
    run = simulate(bristled, times=times, tolerance=TOLERANCE)
    np.testing.assert_allclose(run.q, compiled.q, atol=1e-7)
    np.testing.assert_allclose(run.energy.strain, compiled.energy.strain, atol=1e-8)


@pytest.mark.slow
def test_bristles_keep_energy_that_the_account_has(bristled, expected):
    run = simulate(bristled, times=TIMES, tolerance=TOLERANCE)
    np.testing.assert_allclose(run.energy.strain, 1e4 * expected[2] ** 2 / 2, atol=1e-8)
    assert run.energy.strain.max() > 1e-6
    assert (np.diff(run.energy.dissipated) > -1e-12).all()  # slow enough to be passive


@pytest.mark.parametrize("integrator", ["explicit", "midpoint", "adams"])
def test_other_integrators_are_refused_with_the_rate_of_bristles(bristled, integrator):
    rate = max(np.sqrt(1e4 / MASS), 1e4 * 0.4 / 0.6)  # stuck; at the largest rate, 0.4 m/s
    assert fastest_friction(bristled, np.zeros(1)) == pytest.approx(rate, rel=1e-3)
    step = 1e-3 if integrator == "midpoint" else None
    with pytest.raises(InputError, match="expected one of auto, esdirk, bdf, as friction has"):
        simulate(bristled, integrator=integrator, step=step)


def test_a_stuck_joint_is_a_spring_of_its_bristles(slider):
    # x (K + sigma0) = K r, but for what bristles give way on the way: the load over F_c, 1e-4
    loop = slider(
        BRISTLES | {"coulomb": 1e5, "smoothing_velocity": 1e-9}, "setpoint", loop={"duration": 2.0}
    )
    run = simulate(loop, times=np.array([2.0]), tolerance=TOLERANCE)
    assert run.q[0, 0] == pytest.approx(0.1 * K / (K + 1e4), rel=5e-4)


@pytest.mark.slow
def test_stiffer_bristles_tend_to_smoothed_friction(slider):
    # with the same step of the steady force, v/sqrt(v^2 + v_s^2) and tanh(v/v_s), for small v_s
    times = np.linspace(0.0, 0.5, 26)
    friction = {"coulomb": 0.6, "smoothing_velocity": 1e-5}
    smoothed = simulate(slider(friction), times=times, tolerance=TOLERANCE).q
    off = [
        np.abs(
            simulate(
                slider(friction | {"model": "lugre", "sigma0": sigma0, "sigma1": 0.0}),
                times=times,
                tolerance=TOLERANCE,
            ).q
            - smoothed
        ).max()
        for sigma0 in (1e3, 1e4, 1e5)
    ]
    # bristles bend by F_c/sigma0 before they slip, and swing where the joint stops
    assert off[0] > 2.5 * off[1] > 8 * off[2]
    assert off[2] < 2e-4


@pytest.mark.parametrize("sigma1", [20.0, 200.0])
def test_power_is_positive_up_to_the_passive_rate(sigma1):
    friction = Friction(**RUBS, **BRISTLES | {"sigma1": sigma1})
    bend = np.linspace(-1, 1, 2001) * RUBS["static"] / 1e4  # all that bristles reach from rest

    def least(v):
        z_rate = v - 1e4 * v * bend / friction.level(v)
        force = 1e4 * bend + sigma1 * z_rate + 0.5 * v
        return (v * force - 1e4 * bend * z_rate).min()

    fastest = friction.passive_rate
    assert all(least(v) > 0 for v in np.linspace(0.001, 0.999, 200) * fastest)
    assert all(least(v) < 0 for v in np.geomspace(1.001, 100, 50) * fastest)


@pytest.mark.parametrize(
    ("table", "passive"),
    [
        ({"static": None, "stribeck_velocity": None}, True),  # nothing falls
        ({"viscous": 20.0 * 0.4 / 0.6 * 1.001}, True),
        ({"viscous": 20.0 * (1.0 / 0.6 - 1)}, True),  # exactly
        ({"viscous": 20.0 * 0.4 / 0.6 * 0.999}, False),
    ],
)
def test_bristles_are_passive_at_any_rate_where_damping_outweighs_the_fall(table, passive):
    known = {key: x for key, x in (RUBS | BRISTLES | table).items() if x is not None}
    assert (Friction(**known).passive_rate == np.inf) == passive


def test_bristles_that_drive_a_joint_within_its_rate_limit_are_refused(make):
    link = {"joint": "prismatic", "hub": {"mass": MASS}, "limits": {"rate": 0.2}}
    with pytest.raises(ValueError, match=r"to limits\.rate .* bristles may drive the joint"):
        make["arm"]([link | {"friction": RUBS | BRISTLES}])
    passive = make["arm"]([link | {"friction": RUBS | BRISTLES | {"sigma1": 0.7}}])
    plant = assemble_plant(passive, interpreted=True, parameters=("link1.friction.sigma1",))
    with pytest.raises(InputError, match=r"^link1\.friction\.sigma1: .* to limits\.rate \(0\.2\)"):
        plant.at({"link1.friction.sigma1": BRISTLES["sigma1"]})


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"sigma0": None}, 'sigma0: expected a value, as model is "lugre"'),
        ({"model": "smoothed"}, 'sigma0: expected no such key, as model is "smoothed"'),
        ({"coulomb": 0.0, "static": None, "stribeck_velocity": None}, "coulomb: expected more"),
    ],
)
def test_keys_of_bristles_belong_to_their_model(changed, message):
    table = {k: x for k, x in (RUBS | BRISTLES | changed).items() if x is not None}
    with pytest.raises(ValueError, match=message):
        Friction.model_validate(table)


def test_numbers_of_bristles_are_free(slider, bristled):
    values = {"link1.friction.sigma0": 3e3, "link1.friction.sigma1": 10.0}
    times = np.array([0.3, 1.0])
    changed = simulate(bristled.at(values), times=times, tolerance=TOLERANCE).q
    anew = slider(RUBS | BRISTLES | {"sigma0": 3e3, "sigma1": 10.0})
    np.testing.assert_allclose(
        changed, simulate(anew, times=times, tolerance=TOLERANCE).q, atol=1e-8
    )


@pytest.mark.parametrize("engine", ["recursion", "lagrange"])
@pytest.mark.parametrize("side", ["motor", "link"])
def test_bristles_of_a_flexible_joint_act_on_their_side(make, engine, side):
    gear = 20.0 if side == "motor" else 1.0
    spring = {"rotor_inertia": 1e-3, "gear": 20.0, "stiffness": 300.0, "carried": True}
    line = {"joint": "revolute", "length": 0.5, "mass_per_length": 1.0, "dh": {"a": 0.5}}
    links = [
        line,
        line | {"flexible_joint": spring, "friction": BRISTLES | {"coulomb": 1.0, "side": side}},
    ]
    plant = assemble_plant(make["arm"](links), modes=1, engine=engine, interpreted=True)
    rng = np.random.default_rng(0)
    q, v, tau, w = (rng.normal(size=k) * 0.1 for k in (3, 3, 2, 1))
    functions, row = plant.casadi_functions, 2 if side == "motor" else 1
    u = gear * v[row]
    bent = u - 1e4 * np.hypot(u, 1e-3) * w[0]
    force = np.zeros(3)
    force[row] = gear * (1e4 * w[0] + 20.0 * bent)
    found = functions["bristles"](v, w, 0.0)
    np.testing.assert_allclose(np.array(found[2]).ravel(), force, rtol=1e-12)
    assert float(found[4]) == pytest.approx(v @ force - 1e4 * w[0] * bent, rel=1e-9)
    a = np.array(functions["bristled_dynamics"](q, v, tau, force)).ravel()
    balance = plant.inverse_dynamics(q, v, a) + force - plant.B @ tau
    np.testing.assert_allclose(balance, 0.0, atol=1e-8 * np.abs(force).max())


@pytest.mark.parametrize(
    "more",
    [{"sample_time": 0.004, "delay": 0.002}, {"measures": ["encoder"]}],
    ids=["sampled", "observer"],
)
def test_laws_of_all_kinds_run_with_bristles(slider, more):
    gains = {"Gp": [K / MASS], "Gv": [C / MASS]}
    loop = slider(RUBS | BRISTLES, method="decoupling", gains=gains, loop={"duration": 1.5, **more})
    run = simulate(loop, tolerance=TOLERANCE)
    assert run.energy.imbalance < 1e-4
    assert abs(run.q[0, -1] - 0.1) < 1.0 / K
