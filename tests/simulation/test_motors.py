"""Runs of arms with motors: a DC motor in closed form, and an integration by SciPy."""

import numpy as np
import pytest
import scipy.integrate

from flexctl.loop.linear import linearise_loop
from flexctl.simulation.simulation import simulate
from tests.arms import make_arm

R, K_T, K_E, G, J = 2.6, 0.077, 0.09, 30.0, 0.8
VOLTS = {"command": "voltage", "resistance": R, "torque_constant": K_T, "back_emf": K_E}
METHODS = {"explicit": None, "esdirk": None, "bdf": None, "rk4": 1e-3, "midpoint": 1e-3}
NEAR = {"midpoint": 1e-5}
TIMES = np.linspace(0.0, 1.0, 41)


def hub(inertia=J, **motor):
    link = {"joint": "revolute", "joint_inertia": inertia, "motor": {**VOLTS, "gear": G, **motor}}
    return make_arm([link])


@pytest.fixture(scope="module")
def stepped(make):
    """stepped(arm, volts): a step of the command for one second and longer."""

    def closed(arm, volts=12.0):
        loop = {"duration": 1.0}
        design = make["design"]([0.0], [volts], "torque", duration=4.0, loop=loop)
        return make["close"](arm, design)

    return closed


def spun_up(t, u):
    """Angle and rate of the motor under a voltage step: tau = J R/(G^2 k_t k_e), w = u/(G k_e)."""
    tau, final = J * R / (G**2 * K_T * K_E), u / (G * K_E)
    return final * (t - tau * (1 - np.exp(-t / tau))), final * (1 - np.exp(-t / tau))


@pytest.mark.parametrize("integrator", METHODS)
def test_a_voltage_step_spins_up_a_motor_as_in_the_textbook(stepped, integrator):
    run = simulate(stepped(hub()), times=TIMES, integrator=integrator, step=METHODS[integrator])
    angle, rate = spun_up(TIMES, 12.0)
    near = NEAR.get(integrator, 1e-8)

    np.testing.assert_allclose(run.q[0], angle, atol=near)
    np.testing.assert_allclose(run.v[0], rate, atol=near)
    np.testing.assert_array_equal(run.tau[0], 12.0)
    current = (12.0 - G * K_E * rate) / R
    np.testing.assert_allclose(run.torque[0], G * K_T * current, atol=100 * near)
    assert run.command_units == ("V",)


def test_the_energy_of_a_motor_is_that_of_its_shaft(stepped):
    t = np.linspace(0.0, 1.0, 401)
    run = simulate(stepped(hub()), times=t)
    rate = spun_up(t, 12.0)[1]

    # J w^2/2 is all that the shaft gives; the electrical power u i less heat R i^2 is k_e G w i,
    # and so that of the shaft times k_e/k_t
    np.testing.assert_allclose(run.energy.supplied, J * rate**2 / 2, atol=1e-9)
    np.testing.assert_allclose(run.energy.dissipated, 0.0, atol=1e-15)
    current = (12.0 - G * K_E * rate) / R
    power = 12.0 * current - R * current**2
    electrical = scipy.integrate.cumulative_simpson(power, x=t, initial=0)
    np.testing.assert_allclose(electrical * K_T / K_E, run.energy.supplied, atol=1e-6)
    assert run.energy.imbalance < 1e-9


@pytest.mark.parametrize("integrator", ["explicit", "esdirk", "bdf"])
def test_a_motor_starts_at_its_current_limit(stepped, integrator):
    # constant torque until u - k_e G w = R i_max, then the exponential of a voltage step
    most = 2.0
    run = simulate(stepped(hub(current_limit=most)), times=TIMES, integrator=integrator)
    a = G * K_T * most / J
    free = (12.0 - R * most) / (G * K_E)  # rate at which the limit is left
    left = free / a
    tau, final = J * R / (G**2 * K_T * K_E), 12.0 / (G * K_E)
    later = final + (free - final) * np.exp(-(TIMES - left) / tau)

    rate = np.where(left > TIMES, a * TIMES, later)
    np.testing.assert_allclose(run.v[0], rate, atol=2e-7)
    assert run.torque[0].max() == pytest.approx(G * K_T * most, rel=1e-12)
    assert run.saturated[0] == pytest.approx(left, abs=TIMES[1])
    assert 0.1 < left < 0.9


def test_a_supply_limits_the_voltage(stepped):
    run = simulate(stepped(hub(voltage_limit=5.0)), times=TIMES)

    np.testing.assert_allclose(run.v[0], spun_up(TIMES, 5.0)[1], atol=1e-8)
    assert run.saturated[0] == pytest.approx(1.0, rel=1e-9)


def test_a_held_voltage_leaves_the_back_emf_continuous(make):
    # sampled far slower than the motor's time constant, the step is still the exponential
    design = make["design"](
        [0.0], [12.0], "torque", duration=4.0, loop={"duration": 1.0, "sample_time": 0.5}
    )
    run = simulate(make["close"](hub(), design), times=TIMES)
    np.testing.assert_allclose(run.v[0], spun_up(TIMES, 12.0)[1], atol=1e-8)


SPRING = {"rotor_inertia": 4e-4, "gear": G, "stiffness": 300.0, "damping": 0.2}


def sprung(**motor):
    """A pendulum behind a harmonic drive, in the vertical plane."""
    link = {"joint": "revolute", "dh": {"a": 0.5}, "flexible_joint": SPRING, "joint_inertia": 0.05}
    link |= {"motor": VOLTS | motor} if motor is not None else {}
    return make_arm([link], (0.0, -9.81, 0.0), {"mass": 1.2})


@pytest.mark.slow_but("esdirk-free")
@pytest.mark.parametrize("limit", [{}, {"current_limit": 1.5}], ids=["free", "limited"])
@pytest.mark.parametrize("integrator", ["explicit", "esdirk"])
def test_a_flexible_joint_under_volts_moves_as_scipy_says(make, integrator, limit):
    gains = {"Gp": [40.0], "Gv": [1.5]}
    design = make["design"]([-1.2], [-0.2], "joint-pd", gains=gains, loop={"duration": 1.2})
    loop = make["close"](sprung(**limit), design)
    times = np.linspace(0, 1.2, 25)
    run = simulate(loop, times=times, integrator=integrator)
    m, length, J_r = 1.2, 0.5, G**2 * SPRING["rotor_inertia"]
    k, d, inertia = SPRING["stiffness"], SPRING["damping"], 0.05 + m * length**2
    per_volt, most = G * K_T / R, limit.get("current_limit", np.inf)

    def desired(t):
        s = min(t / 0.5, 1.0)
        moved = s - np.sin(2 * np.pi * s) / (2 * np.pi)
        return -1.2 + moved, (1 - np.cos(2 * np.pi * s)) / 0.5

    def rates(t, x):
        joint, rotor, w, w_r = x
        q_d, v_d = desired(t)
        sag, slope = m * 9.81 * length * np.cos(q_d) / k, -m * 9.81 * length * np.sin(q_d) / k
        error, rate = rotor - q_d - sag, w_r - v_d * (1 + slope)
        u = m * 9.81 * length * np.cos(q_d) / per_volt - 40.0 * error - 1.5 * rate
        i = np.clip((u - K_E * G * w_r) / R, -most, most)
        spring = k * (rotor - joint) + d * (w_r - w)
        turned = (spring - m * 9.81 * length * np.cos(joint)) / inertia
        return [w, w_r, turned, (G * K_T * i - spring) / J_r]

    start = [-1.2, -1.2 + m * 9.81 * length * np.cos(-1.2) / k, 0.0, 0.0]
    done = scipy.integrate.solve_ivp(
        rates, (0, 1.2), start, t_eval=times, rtol=1e-10, atol=1e-12, max_step=0.01
    )
    np.testing.assert_allclose(run.q, done.y[:2], atol=2e-6 if limit else 1e-7)
    assert run.energy.imbalance < 1e-7
    assert bool(run.saturated[0] > 0) == bool(limit)


def test_a_force_constant_is_a_torque_constant_times_radians_per_metre(make):
    # a spindle of 200 rad/m: force 200 k_t i, back-EMF 200 k_e per m/s
    link = {"joint": "prismatic", "joint_inertia": 3.0, "motor": {**VOLTS, "gear": 200.0}}
    design = make["design"]([0.0], [6.0], "torque", duration=4.0, loop={"duration": 1.0})
    run = simulate(make["close"](make_arm([link]), design), times=TIMES)
    tau, final = 3.0 * R / (200.0**2 * K_T * K_E), 6.0 / (200.0 * K_E)

    np.testing.assert_allclose(run.v[0], final * (1 - np.exp(-TIMES / tau)), atol=1e-8)
    assert run.command_units == ("V",)


def test_back_emf_may_be_the_only_damper(make):
    # J s^2 + (G^2 k_t k_e/R) s + (G k_t/R) Gp = 0 under proportional control alone
    gains = {"Gp": [40.0], "Gv": [0.0]}
    loop = make["close"](hub(), make["design"]([0.0], [0.4], "joint-pd", gains=gains))
    poles = linearise_loop(loop, np.array([0.4]), 0.0).poles
    expected = np.roots([J, G**2 * K_T * K_E / R, G * K_T / R * 40.0])

    np.testing.assert_allclose(np.sort_complex(poles), np.sort_complex(expected), rtol=1e-9)
    with pytest.raises(ValueError, match=r"gains.Gv: expected more than 0, as method is decoupl"):
        make["design"]([0.0], [0.4], "decoupling", gains=gains)


LIGHT = 0.05  # kg m^2: its motor stops it within 3 ms, less than the delay
DELAY = {"sample_time": 0.002, "delay": 0.01, "duration": 1.5}


@pytest.fixture(scope="module")
def delayed(make):
    """The same damper twice: of the motor's back-EMF, and as a rate gain of a late law."""
    k_e, fast = 0.6, {"duration": 0.3, "loop": DELAY}
    damper = G * k_e  # volts per rad/s

    def closed(back_emf, Gv):
        arm = hub(LIGHT, back_emf=back_emf)
        design = make["design"]([0.0], [0.4], "joint-pd", gains={"Gp": [400.0], "Gv": [Gv]}, **fast)
        return make["close"](arm, design)

    return closed(k_e, 1e-3), closed(0.0, damper), damper


@pytest.mark.slow
def test_back_emf_damps_where_the_same_gain_of_a_late_law_diverges(delayed):
    by_motor, by_law, damper = delayed
    poles = [linearise_loop(loop, np.array([0.4]), 0.0).poles for loop in (by_motor, by_law)]
    ideal = np.roots([LIGHT, G * K_T / R * damper, G * K_T / R * 400.0])

    assert (ideal.real < 0).all()
    assert poles[0].real.max() < 0 < poles[1].real.max()
    error = np.abs(simulate(by_motor).joint_error[0])
    assert error[-1] < 1e-3
    wild = np.abs(simulate(by_law, duration=0.15).joint_error[0])
    assert wild[-100:].max() > 10 * wild[:500].max()


@pytest.mark.slow
@pytest.mark.parametrize("method", ["joint-pd", "decoupling"])
def test_amperes_are_torques_in_other_units(make, method):
    gravity = (0.0, -9.81, 0.0)
    per_ampere = np.array([90 * 0.12, 60 * 0.2])
    gains = {"Gp": [80.0, 40.0], "Gv": [12.0, 5.0], "Gi": [30.0, 20.0]}
    own = {k: (np.array(v) / per_ampere).tolist() for k, v in gains.items()}
    basis = {"kind": "modes", "order": 1}
    motors = [
        {"command": "current", "torque_constant": k, "gear": g}
        for k, g in [(0.12, 90.0), (0.2, 60.0)]
    ]
    bare = make["two-link"](gravity, EI=40.0)
    links = [
        link | {"motor": motor} for link, motor in zip(bare.table()["link"], motors, strict=True)
    ]
    driven = type(bare).model_validate({**bare.table(), "name": "arm", "link": links})
    runs, poles = [], []
    for arm, numbers in ((bare, gains), (driven, own if method == "joint-pd" else gains)):
        design = make["design"]([-1.2, 0.3], [-0.5, 0.9], method, gains=numbers, basis=basis)
        loop = make["close"](arm, design, order=1)
        runs.append(simulate(loop))
        poles.append(linearise_loop(loop, loop.controller.reference.final, 0.0).poles)

    np.testing.assert_allclose(runs[1].q, runs[0].q, atol=1e-8)
    np.testing.assert_allclose(runs[1].torque, runs[0].torque, atol=1e-5)
    np.testing.assert_allclose(runs[1].tau * per_ampere[:, None], runs[0].tau, atol=1e-5)
    np.testing.assert_allclose(np.sort_complex(poles[1]), np.sort_complex(poles[0]), rtol=1e-7)


def test_newton_knows_how_forces_and_states_of_a_law_move(make):
    # a PID with a filtered derivative, under volts: force = G k_t/R u, back-EMF is damping
    gains = {"Gp": [40.0], "Gv": [1.5], "Gi": [15.0], "derivative_filter": [80.0]}
    loop = make["close"](sprung(), make["design"]([-1.2], [-0.2], "pid", gains=gains))
    n, n_z, rng = loop.truth.n, loop.controller.n_state, np.random.default_rng(3)
    at = [rng.normal(size=size) for size in (1, n_z, 1, 1, 1, n, n)]

    def law(x):
        z, q, v = np.split(x, [n_z, n_z + n])
        tau, rate = loop.law(at[0], z, *at[2:5], q, v, loop.law_numbers)
        return np.concatenate([[float(tau), G * K_T / R * float(tau)], np.array(rate).ravel()])

    x, steps = np.concatenate([at[1], *at[5:]]), 1e-4 * np.eye(n_z + 2 * n)
    J = np.array([(law(x + step) - law(x - step)) / 2e-4 for step in steps]).T
    tau, force, rate = J[:1], J[1:2], J[2:]
    by_z, by_q, by_v = slice(n_z), slice(n_z, n_z + n), slice(n_z + n, None)
    expected = [force[:, by_q], force[:, by_v], tau[:, by_z], force[:, by_z]]
    expected += [rate[:, by_q], rate[:, by_v], rate[:, by_z]]
    found = loop.law_jacobian(*at, loop.force_numbers)
    for own, right in zip(found, expected, strict=True):
        np.testing.assert_allclose(np.array(own), right, rtol=1e-7, atol=1e-7)
