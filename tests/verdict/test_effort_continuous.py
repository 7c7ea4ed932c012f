"""Effort of a continuous law that answers a step with a pulse, against the exact linear loop."""

import numpy as np
import pytest

from flexctl.control import design_controller
from flexctl.loop.closed_loop import close_around
from flexctl.simulation import simulate
from flexctl.verdict.performance import judge_effort, run_times
from tests.arms import plant_of, rigid_link
from tests.designs import make_design

INERTIA, GP, GV = 0.53, 20.0, 6.0


def loop_of(N, duration, start=0.0, **reference):
    gains = {"Gp": GP, "Gv": GV, "Gi": 1e-9, "derivative_filter": N}
    reference = {"kind": "setpoint", "from": [start], "to": [1.0]} | reference
    design = make_design(
        [0.0], [1.0], "pid", gains=gains, reference=reference, loop={"duration": duration}
    )
    arm = rigid_link(INERTIA)
    return close_around(design_controller(arm, design), plant_of(arm, "modes", 1))


def exact(N, duration):
    """Root mean square torque and work of the loop in [q - 1; v; filter], which starts at rest."""
    law = np.array([-GP - GV * N, 0.0, GV * N])
    A = np.array([[0.0, 1.0, 0.0], law / INERTIA, [N, 0.0, -N]])
    values, V = np.linalg.eig(A)
    begun = np.linalg.solve(V, [-1.0, 0.0, 0.0])
    t = np.append(0.0, np.geomspace(1e-9, duration, 400_001))
    _, v, _ = x = (V @ (begun[:, None] * np.exp(np.outer(values, t)))).real
    u = law @ x
    return np.sqrt(np.trapezoid(u**2, t) / duration), np.trapezoid(np.abs(u * v), t)


@pytest.mark.parametrize("N", [30.0, 300.0, 1000.0, 2e4])
@pytest.mark.parametrize("duration", [0.5, 4.0])
@pytest.mark.usefixtures("no_compiler")
def test_a_pulse_of_a_derivative_counts_however_short_it_is(N, duration):
    loop = loop_of(N, duration)
    found = judge_effort(simulate(loop, times=run_times(loop)))
    rms, work = exact(N, duration)

    # even samples alone: 5.6 % too much at 300 rad/s over 4 s, and 3.3 % too little work
    assert found.rms[0] == pytest.approx(rms, rel=2e-4)
    assert found.energy == pytest.approx(work, rel=2e-4)


@pytest.mark.usefixtures("no_compiler")
def test_every_stair_of_a_shaped_step_has_samples_of_its_own():
    shaper = {"kind": "ZVD", "frequency": [9.0], "damping_ratio": [0.1]}
    loop = loop_of(300.0, 4.0, shaper=shaper)
    t, stairs = run_times(loop), (0.0, *loop.controller.reference.breaks)

    assert len(stairs) == 3
    for stair in stairs:
        assert ((t > stair) & (t < stair + 1e-3)).sum() > 100
    assert np.diff(t).min() > 1e-9 * loop.duration / 2
    # a joint that is to stay where it is steps nowhere
    assert len(run_times(loop_of(300.0, 4.0, start=1.0))) == 2001
