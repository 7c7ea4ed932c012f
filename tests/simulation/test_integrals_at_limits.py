"""Steps of compiled runs where integrals stop at a limit that the arm does not feel."""

import numpy as np
import pytest
import scipy.integrate

from flexctl.simulation.simulation import simulate

INERTIA, TRACKING = 0.5, 0.15
WAYS = ["clamping", "back-calculation"]


@pytest.mark.parametrize("integrator", ["explicit", "esdirk"])
@pytest.mark.parametrize("how", WAYS)
def test_steps_meet_the_times_at_which_integrals_stop_and_go_on(make, how, integrator):
    """Where the arm does not feel them: a motor at its current limit under too much voltage."""
    R, k, gear, current, voltage = 2.0, 0.1, 20.0, 1.2, 24.0
    motor = {"resistance": R, "torque_constant": k, "back_emf": k, "gear": gear}
    limits = {"command": "voltage", "current_limit": current, "voltage_limit": voltage}
    arm = make["rigid-link"](motor=motor | limits)
    gains = {"Gp": [40.0], "Gv": [5.0], "Gi": [60.0]}
    loop = {"duration": 4.0, "sample_time": 0.0, "anti_windup": how}
    loop |= {"tracking_time": TRACKING} if how == "back-calculation" else {}
    design = make["design"]([0.0], [1.0], "joint-pd", kind="setpoint", gains=gains, loop=loop)

    def rate(_t, x):
        e = x[0] - 1
        u = -40 * e - 5 * x[1] - 60 * x[2]
        acts = np.clip(u, -voltage, voltage)
        i = np.clip((acts - gear * k * x[1]) / R, -current, current)
        back = e - (acts - u) / 60 / TRACKING
        return [x[1], gear * k * i / INERTIA, back if how == WAYS[1] else e * (acts == u)]

    times = np.linspace(0, 4, 41)
    own = scipy.integrate.solve_ivp(
        rate, (0, 4), np.zeros(3), t_eval=times, rtol=1e-9, atol=1e-11, max_step=1e-3
    )
    run = simulate(make["close"](arm, design), times=times, integrator=integrator)
    assert own.y[0].max() > 1.2  # of the angle: saturated for long
    np.testing.assert_allclose(run.q[0], own.y[0], atol=3e-6)
