"""A continuous law whose clamped integral slides along the limit of its torque."""

import numpy as np
import pytest

from flexctl.control import design_controller
from flexctl.loop.closed_loop import close_loop
from flexctl.model.record import BasisChoice
from flexctl.plant import find_compiler
from flexctl.simulation.simulation import simulate
from tests.arms import make_arm
from tests.designs import make_design

pytestmark = pytest.mark.skipif(find_compiler() is None, reason="takes minutes without a compiler")


def riding(sample_time):
    """Run a PID whose torque rides along its limit, 80 N, from 0.23 s on for 0.03 s."""
    link = {
        "joint": "prismatic",
        "total_length": 1.0,
        "mass_per_length": 3.0,
        "hub": {"mass": 1.5},
        "joint_inertia": 0.8,
        "friction": {"viscous": 4.0},
        "limits": {"torque": 80.0},
    }
    design = make_design(
        [0.3],
        [0.5],
        method="pid",
        gains={"Gp": 600.0, "Gv": 60.0, "Gi": 2500.0, "derivative_filter": 300.0},
        reference={"kind": "cycloid", "from": [0.3], "to": [0.5], "duration": 0.6},
        loop={"duration": 0.6, "sample_time": sample_time},
    )
    arm = make_arm([link], (0.0, 0.0, -9.81), {"mass": 0.9})
    basis = BasisChoice(order=1)
    return simulate(close_loop(design_controller(arm, design, basis), arm, basis))


def test_a_torque_rides_along_its_limit_where_its_integral_alone_would_return_it():
    run = riding(0.0)
    at = run.t[np.abs(run.tau[0]) > 80.0 * (1 - 1e-6)]

    assert run.steps < 20_000  # of a switch that goes on and off there are ever more
    assert [at.min(), at.max()] == pytest.approx([0.2154, 0.2454], abs=1e-3)
    assert np.diff(at).max() < 1e-3  # all the time between


def test_sampled_laws_tend_to_that_motion():
    # they switch the integral on and off: extrapolated to no period
    coarse, fine = (riding(period).q[0, -1] for period in (1e-4, 5e-5))
    end = riding(0.0).q[0, -1]

    assert 2 * fine - coarse == pytest.approx(end, abs=1e-5)
    assert abs(fine - end) > 1e-4
