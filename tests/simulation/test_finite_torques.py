"""A law of the user's that gives NaN is told so, though a torque limit would hide it."""

import casadi as ca
import numpy as np
import pytest

import flexctl
from flexctl.control.laws import _length
from flexctl.errors import ComputationError, RunError


def closed(tau, **options):
    """Loop of single-link-hub (limit 30 N m) with tau(q_d, y), a function without states."""
    t, q_d, v_d, a_d, y = (ca.SX.sym(name) for name in ("t", "q_d", "v_d", "a_d", "y"))
    z = ca.SX.sym("z", 0)
    f = ca.Function("f", [t, z, q_d, v_d, a_d, y], [tau(q_d, y), ca.SX(0, 1)])
    plant = flexctl.assemble_plant("single-link-hub", modes=1, interpreted=True)
    controller = flexctl.wrap_controller(f, plant, "hub-pd", measures=["joint1"], **options)
    return flexctl.close_loop(controller, "single-link-hub", modes=2)


@pytest.mark.parametrize("sampling", [{}, {"sample_time": 0.01}])
def test_nan_at_the_start_ends_the_run_there(sampling):
    loop = closed(lambda q_d, y: (q_d - y) / (q_d * 0), **sampling)

    with pytest.raises(
        RunError, match=r"at t = 0 s the law gives joint1 the torque (nan|inf)"
    ) as error:
        flexctl.simulate(loop, duration=0.1)

    assert error.value.time == 0


def test_nan_behind_a_torque_limit_is_found_at_its_sample():
    limit = 0.05  # rad: sqrt of a negative number beyond
    loop = closed(lambda q_d, y: 20 * (q_d - y) + ca.sqrt(limit - y))
    times = np.linspace(0, 0.4, 41)

    with pytest.raises(RunError, match="which is no finite number") as error:
        flexctl.simulate(loop, times=times)

    assert 0 < error.value.time < 0.4


def test_large_torques_are_limited_not_refused():
    run = flexctl.simulate(closed(lambda q_d, y: 1e6 * (q_d - y)), duration=0.01)

    assert np.abs(run.tau).max() <= 30


def test_a_law_without_a_derivative_at_rest_is_run_and_not_linearised():
    loop = closed(lambda q_d, y: 2 * ca.sign(q_d - y) * ca.sqrt(ca.fabs(q_d - y)))

    assert flexctl.simulate(loop, duration=0.1).t[-1] == 0.1
    with pytest.raises(ComputationError, match="no finite derivative at its equilibrium"):
        flexctl.linearise(loop)
    verdict = flexctl.evaluate(loop)
    assert "no finite derivative" in verdict.not_computed["stability"]


def test_a_law_without_torques_at_its_reference_has_no_equilibrium_to_look_for():
    loop = closed(lambda q_d, y: (q_d - y) / (q_d - y) ** 2)

    with pytest.raises(ComputationError, match="no finite numbers at the reference joint1 ="):
        flexctl.linearise(loop)


def test_a_sampled_law_is_judged_where_it_acts():
    hole = 0.0123  # rad: a value of the angle between two samples only
    loop = closed(
        lambda q_d, y: 20 * (q_d - y) + 0 / ca.if_else(ca.fabs(y - hole) < 1e-9, 0, 1),
        sample_time=0.05,
    )
    times = np.linspace(0, 0.4, 401)

    assert flexctl.simulate(loop, times=times, duration=0.4).t[-1] == 0.4


def test_a_wide_torque_is_no_column():
    q = ca.SX.sym("q", 2)

    assert _length(ca.Function("f", [q], [q.T]).size_out(0)) == (1, 2)
    assert _length(ca.Function("f", [q], [q]).size_out(0)) == 2
    assert _length(ca.Function("f", [q], [ca.SX(0, 1)]).size_out(0)) == 0
