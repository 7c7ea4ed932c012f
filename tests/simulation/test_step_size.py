"""Modes that grow and that the steps of a method damp: no such run is trusted."""

import numpy as np
import pytest
from scipy.integrate import DOP853

import flexctl
from flexctl.errors import RunError
from flexctl.simulation.step_size import (
    Moment,
    damped_growth,
    esdirk_growth,
    explicit_growth,
    local_poles,
)
from flexctl.verdict import TOLERANCE

AT = [Moment(t=t, phase=0.0, q=np.zeros(1), v=np.zeros(1)) for t in (0.0, 1.0, 2.0)]
SETTLED, GROWING = np.array([-2.0 + 3.0j]), np.array([-2.0 + 3.0j, 5.0 + 6000.0j])
# of ARK4(3)6L[2]SA, the implicit part
A = np.array(
    [
        [0, 0, 0, 0, 0, 0],
        [1 / 4, 1 / 4, 0, 0, 0, 0],
        [8611 / 62500, -1743 / 31250, 1 / 4, 0, 0, 0],
        [5012029 / 34652500, -654441 / 2922500, 174375 / 388108, 1 / 4, 0, 0],
        [
            15267082809 / 155376265600,
            -71443401 / 120774400,
            730878875 / 902184768,
            2285395 / 8070912,
            1 / 4,
            0,
        ],
        [82889 / 524892, 0, 15625 / 83664, 69875 / 102672, -2260 / 8211, 1 / 4],
    ]
)


@pytest.mark.parametrize("z", [0.1j, 1j, 3j, 0.2 + 5j, -1 + 1j, 40j, 30 + 200j])
def test_growth_in_a_step_is_that_of_the_tableau(z):
    R = 1 + z * A[-1] @ np.linalg.solve(np.eye(6) - z * A, np.ones(6))

    assert esdirk_growth(np.array([z]))[0] == pytest.approx(np.log(abs(R)), abs=1e-9)


@pytest.mark.parametrize(
    ("spectra", "end", "step", "found"),
    [
        ([GROWING] * 3, 8.0, 1e-3, (0.0, 5.0)),  # e to the 40
        ([GROWING] * 3, 5.9, 1e-3, None),  # e to the 29.5: still rounding
        ([GROWING] * 3, 8.0, 1e-4, None),  # 0.6 rad in a step: the run shows it
        ([SETTLED, SETTLED, GROWING], 7.6, 1e-3, (2.0, 5.0)),  # 2.5 from the second pose, 28 later
        ([GROWING, SETTLED, SETTLED], 100.0, 1e-3, None),  # it passes
        ([np.array([5.0 + 1.0j])] * 3, 100.0, 1e-2, None),  # slow for the steps
        ([np.array([300.0 + 3000.0j])] * 3, 100.0, 1e-3, None),  # so fast that it is shown
        ([SETTLED] * 3, 100.0, 1.0, None),
    ],
)
def test_growth_is_hidden_where_steps_are_long_and_it_lasts(spectra, end, step, found):
    assert damped_growth("esdirk", AT, spectra, end, step) == found


@pytest.mark.parametrize("z", [0.3j, 1 + 2j, -3 + 1j, 0.02 + 5.5j, 6j])
def test_growth_in_an_explicit_step_is_that_of_scipy_s(z):
    coarse = {"first_step": 1.0, "max_step": 1.0, "rtol": 1e9, "atol": 1e9}
    method = DOP853(lambda _, y: z * y, 0.0, np.array([1.0 + 0j]), 1.0, **coarse)
    method.step()

    assert method.t == 1.0
    assert explicit_growth(np.array([z]))[0] == pytest.approx(np.log(abs(method.y[0])), abs=1e-9)


@pytest.mark.parametrize(
    ("turned", "found"),
    [(5.6, (0.0, 20.0)), (3.0, None)],  # in a step at the limit of stability, and well within it
)
def test_steps_at_the_limit_of_stability_hide_what_grows(turned, found):
    spectra = [np.array([20.0 + 5000.0j, -1.0])] * 3
    assert damped_growth("explicit", AT, spectra, 4.0, turned / 5000.0) == found


@pytest.mark.usefixtures("no_compiler")
@pytest.mark.parametrize("command", ["current", "voltage"])
def test_poles_of_a_run_are_those_of_the_loop_with_its_motors(make, command):
    motor = {"command": command, "gear": 50.0, "torque_constant": 0.07}
    motor |= {"resistance": 2.0, "back_emf": 0.06} if command == "voltage" else {}
    arm = make["single"](motor=motor)
    loop = make["close"](arm, make["design"]([0.0], [0.4], gains={"Gp": [9.0], "Gv": [2.0]}))
    linear = flexctl.linearise(loop)
    found = local_poles(loop, linear.rest.q, loop.controller.reference.duration)

    np.testing.assert_allclose(np.sort_complex(found), np.sort_complex(linear.poles), rtol=1e-6)


@pytest.mark.slow
def test_a_run_that_an_implicit_method_would_calm_is_shown_to_diverge(monkeypatch):
    """Decoupling on 8 elements: a mode of the motion grows at 400 1/s, which esdirk damps."""
    monkeypatch.delenv("FLEXCTL_CC", raising=False)  # a test before may have needed no compiler
    controller = flexctl.design_controller("planar-two-link", "two-link-decoupling")
    loop = flexctl.close_loop(controller, "planar-two-link", elements=8)
    with pytest.raises(RunError, match=r"a mode that grows at 39\d 1/s, and the steps of esdirk,"):
        flexctl.simulate(loop, integrator="esdirk", tolerance=TOLERANCE)

    found = flexctl.evaluate(loop)
    assert found.failed is not None
    assert "the run ends at t = 0.07" in found.failed
    assert found.residual is None
