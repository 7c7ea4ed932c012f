"""Loops of computed torque: exact on a rigid arm, off by the sag under gravity."""

import numpy as np
import pytest

from flexctl.loop.equilibrium import find_loop_equilibrium
from flexctl.loop.linear import linearise_loop
from flexctl.simulation.simulation import simulate

pytestmark = pytest.mark.usefixtures("no_compiler")


def test_a_run_of_a_rigid_arm_forgets_an_error_as_the_gains_say(make):
    # e'' + 7 e' + 12 e = 0 from e = 0.1 at rest: e = 0.1 (4 exp(-3 t) - 3 exp(-4 t))
    gains = {"Gp": [12.0], "Gv": [7.0]}
    design = make["design"]([0.3, -0.2], [0.8, 0.5], "computed-torque", gains=gains, duration=0.6)
    loop = make["close"](make["rigid"](), design)
    start = np.array([0.4, -0.1]), np.zeros(2)

    run = simulate(loop, start=start, duration=1.5)

    e = run.q - loop.controller.reference.sample(run.t)[0]
    exact = 0.1 * (4 * np.exp(-3 * run.t) - 3 * np.exp(-4 * run.t))
    assert np.abs(e - exact).max() < 1e-7  # tolerance of the run


def test_the_linear_loop_of_a_rigid_arm_has_the_poles_of_its_gains(make):
    gains = {"Gp": [12.0, 80.0], "Gv": [7.0, 4.0], "Gi": [5.0, 9.0]}
    design = make["design"]([0.3, -0.2], [0.8, 0.5], "computed-torque", gains=gains)
    loop = make["close"](make["rigid"](), design)

    poles = linearise_loop(loop, loop.controller.reference.final, 0.0).poles

    exact = np.concatenate([np.roots([1, 7, 12, 5]), np.roots([1, 4, 80, 9])])
    assert np.sort_complex(poles) == pytest.approx(np.sort_complex(exact), rel=1e-9)


def test_it_holds_a_stiff_arm_where_it_should_be(make):
    # under gravity without integral action: links a hundred times stiffer sag a hundred times less
    design = make["design"]([-1.2, 0.3], [-0.5, 0.9], "computed-torque")
    offsets = []
    for EI in (4e4, 4e6):
        arm = make["two-link"]((0.0, -9.81, 0.0), EI=EI)
        loop = make["close"](arm, design)
        rest = find_loop_equilibrium(loop, loop.controller.reference.final, 0.0)
        offsets.append(np.abs(rest.q[:2] - rest.desired).max())

    assert 0 < offsets[1] == pytest.approx(offsets[0] / 100, rel=0.05)
