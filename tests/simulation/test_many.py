"""Many arms at once: the runs are those of the arms one by one, whatever happens to one of them."""

import ctypes as ct

import casadi as ca
import numpy as np
import pytest

from flexctl.errors import InputError, RunError
from flexctl.simulation import lanes as lanes_module
from flexctl.simulation import many as many_module
from flexctl.simulation.integrators import Tolerance
from flexctl.simulation.lanes import LANES, have_lanes, lane_library, lane_source
from flexctl.simulation.many import simulate_many
from flexctl.simulation.simulation import simulate

needs_lanes = pytest.mark.skipif(not have_lanes(), reason="arms one by one")
TIMES = np.linspace(0, 0.6, 61)
FINE = Tolerance.of(1e-11)


def at_once(run):
    """Whether a run was one of several at once."""
    return f"{LANES} arms at once" in run.integrator


def assert_same(runs, loops, **how):
    """Assert that runs are those of the loops one by one; errors are those that they raise."""
    assert len(runs) == len(loops)
    for run, loop in zip(runs, loops, strict=True):
        one = simulate(loop, **how)
        for name in ("q", "v", "tau", "z"):
            own, other = getattr(run, name), getattr(one, name)
            np.testing.assert_allclose(own, other, atol=1e-6 * max(np.abs(other).max(initial=1), 1))
        scale = one.energy.scale
        np.testing.assert_allclose(run.energy.supplied, one.energy.supplied, atol=1e-6 * scale)
        np.testing.assert_allclose(run.energy.dissipated, one.energy.dissipated, atol=1e-6 * scale)
        assert run.tip == pytest.approx(one.tip, abs=1e-7)


def varied(loop, count, seed=0, gains=("Gp", "Gv")):
    """Loops of random payloads, stiffnesses and gains about those of a loop."""
    rng, arm, design = np.random.default_rng(seed), loop.truth.arm, loop.controller.design
    base = {"payload.mass": arm.payload.mass}
    base |= {"link1.EI.y": arm.links[0].EI["y"]} if arm.links[0].EI else {}
    given = design.gains.model_dump()
    base |= {f"gains.{name}": np.array(given[name]) for name in gains if given.get(name)}
    return [
        loop.at({key: x * rng.uniform(0.8, 1.2) for key, x in base.items()}) for _ in range(count)
    ]


SAMPLED = {"sample_time": 0.02, "delay": 0.013, "duration": 0.6}
INTEGRAL = {"Gp": [60.0], "Gv": [15.0], "Gi": [40.0]}
CASES = {
    "continuous": {"loop": {"duration": 0.6}},
    "integral": {"gains": INTEGRAL, "loop": {"duration": 0.6}},
    "sampled": {"gains": INTEGRAL, "loop": SAMPLED},
    "joint PD": {"method": "joint-pd", "loop": {"duration": 0.6}},
}


@pytest.fixture(scope="module")
def loop_of(two_link_loop):
    def build(case):
        return two_link_loop(**{"duration": 0.3, **CASES[case]})

    return build


@pytest.mark.slow_but("joint PD")
@needs_lanes
@pytest.mark.parametrize("case", CASES)
def test_runs_at_once_are_those_one_by_one(loop_of, case):
    loops = varied(loop_of(case), LANES + 2)
    runs = simulate_many(loops, times=TIMES, tolerance=FINE)
    assert all(at_once(run) for run in runs)
    assert_same(runs, loops, times=TIMES, tolerance=FINE)


@needs_lanes
def test_an_observer_runs_at_once(make):
    measured = {"measures": ["encoder", "tachometer", "strain_gauge"], "duration": 0.6}
    design = make["design"]([0.0], [0.4], loop=measured, basis={"kind": "modes", "order": 2})
    loops = varied(make["close"](make["single"](), design, order=2), LANES)
    runs = simulate_many(loops, times=TIMES, tolerance=FINE)
    assert all(at_once(run) for run in runs)
    assert runs[0].z.any()
    assert_same(runs, loops, times=TIMES, tolerance=FINE)


@needs_lanes
def test_each_arm_has_its_own_seconds_at_its_torque_limit(make):
    gains = {"Gp": [30.0], "Gv": [6.0], "Gi": [1.0]}
    design = make["design"](
        [0.0], [1.0], "joint-pd", kind="setpoint", gains=gains, loop={"duration": 4.0}
    )
    loop = make["close"](make["rigid-link"](torque=2.0), design)
    loops = [loop.at({"gains.Gp": [Gp]}) for Gp in (1.0, 10.0, 30.0, 60.0, 90.0)]
    runs = simulate_many(loops)
    seconds = [run.saturated[0] for run in runs]
    assert seconds[0] == 0
    assert seconds[2] > 0.5
    for run, loop in zip(runs, loops, strict=True):
        one = simulate(loop)
        assert at_once(run)
        np.testing.assert_allclose(run.q, one.q, atol=1e-5)
        assert run.saturated == pytest.approx(one.saturated, abs=5e-3)  # of the steps


@pytest.mark.slow
@needs_lanes
def test_an_arm_that_leaves_its_range_ends_alone(make):
    tables = {"duration": 0.1, "gains": {"Gp": [60.0], "Gv": [20.0]}, "loop": {"duration": 0.6}}
    design = make["design"]([0.0, 0.5], [0.1, 0.9], "joint-pd", **tables)
    loop = make["close"](make["sliding"](), design, order=1)
    loops = [loop.at({"gains.Gv": Gv}) for Gv in (20.0, 0.5, 21.0, 22.0)]  # the second overshoots
    runs = simulate_many(loops, times=TIMES)
    assert isinstance(runs[1], RunError)
    with pytest.raises(RunError) as raised:
        simulate(loops[1], times=TIMES)
    assert runs[1].why == raised.value.why
    assert runs[1].time == pytest.approx(raised.value.time, abs=0.02)
    others = [k for k in range(4) if k != 1]
    assert all(at_once(runs[k]) for k in others)
    assert_same([runs[k] for k in others], [loops[k] for k in others], times=TIMES)


@needs_lanes
def test_arms_with_other_events_run_apart(loop_of):
    loop = loop_of("continuous")
    loops = [loop.at({"reference.duration": T}) for T in (0.3, 0.35, 0.3)]
    runs = simulate_many(loops, times=TIMES, tolerance=FINE)
    assert len({run.steps for run in runs}) == 2
    assert_same(runs, loops, times=TIMES, tolerance=FINE)


@pytest.mark.parametrize("count", [0, 1])
def test_none_or_one_needs_no_others(loop_of, count):
    loops = varied(loop_of("joint PD"), count)
    runs = simulate_many(loops, times=TIMES)
    assert not any(at_once(run) for run in runs)
    assert_same(runs, loops, times=TIMES)


def test_without_a_compiler_arms_run_one_by_one(loop_of, monkeypatch):
    loops = varied(loop_of("joint PD"), 2)
    times, coarse = TIMES[:7], Tolerance.of(1e-8)
    compiled = simulate_many(loops, times=times, tolerance=coarse)
    monkeypatch.setenv("FLEXCTL_CC", "none")
    for run, other in zip(
        simulate_many(loops, times=times, tolerance=coarse), compiled, strict=True
    ):
        assert not at_once(run)
        np.testing.assert_allclose(run.q, other.q, atol=1e-6)


def test_a_processor_without_these_vectors_takes_one_by_one(loop_of, monkeypatch):
    monkeypatch.setattr(lanes_module, "processor", lambda: frozenset({"sse2"}))
    runs = simulate_many(varied(loop_of("joint PD"), 2), times=TIMES)
    assert not any(at_once(run) for run in runs)


def test_other_functions_are_refused(loop_of):
    with pytest.raises(InputError, match="number 2"):
        simulate_many([loop_of("joint PD"), loop_of("continuous")])


# x and y in general, with signs and equal ones, and NaN, which comparisons and limits must treat
# as C does
X = np.array([0.3, -1.7, 0.9, np.nan])
Y = np.array([0.8, -1.7, np.nan, -0.2])
OPERATIONS = {
    "arithmetic": lambda x, y: x + y * 3.5 - x / y + x**2 - 2 * x + 1 / y,
    "sine": lambda x, y: ca.sin(7 * x) + ca.cos(1e3 * y),
    "powers": lambda x, y: ca.sqrt(ca.fabs(x)) + ca.fabs(y) ** 1.3 + ca.exp(x) + x**3,
    "power": lambda x, y: ca.fabs(x) ** y,
    "less": lambda x, y: 2 * (x < y) + (x <= y),
    "equal": lambda x, y: 2 * (x == y) + (x != y),
    "logic": lambda x, y: ca.logic_or(ca.logic_and(x, y > 0), ca.logic_not(y)),
    "choice": lambda x, y: ca.if_else(x < y, x, y),
    "least": ca.fmin,
    "most": ca.fmax,
    "sign": lambda x, y: ca.sign(x) + ca.fabs(y),
    "others": lambda x, y: ca.tanh(x) + ca.atan2(y, x) + ca.log(x**2) + ca.floor(3 * y) + ca.tan(y),
    "infinite": lambda x, y: ca.fmin(x, np.inf) + y * -0.0,
}


@needs_lanes
@pytest.mark.parametrize("name", OPERATIONS)
def test_operations_of_lanes_are_those_of_numbers(name, monkeypatch):
    x, y = ca.SX.sym("x"), ca.SX.sym("y")
    f = ca.Function("trial", [x, y], [OPERATIONS[name](x, y)])
    monkeypatch.setattr(lanes_module, "build", lambda *_: f)
    monkeypatch.setattr(lanes_module, "content", lambda *_: f.serialize())
    call = ct.CDLL(str(lane_library(None, "trial"))).trial
    found = np.zeros(LANES)
    pointers = [values.ctypes.data_as(ct.c_void_p) for values in (X.copy(), Y.copy(), found)]
    call((ct.c_void_p * 2)(*pointers[:2]), (ct.c_void_p * 1)(pointers[2]), None, None, 0)
    expected = [float(f(a, b)) for a, b in zip(X, Y, strict=True)]
    np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-15)


def test_a_function_with_other_operations_is_not_lane_wise():
    x = ca.SX.sym("x")
    assert lane_source(ca.Function("erf", [x], [ca.erf(x)])) is None
    A = ca.MX.sym("A", 2, 2)
    assert lane_source(ca.Function("solve", [A], [ca.solve(A, ca.DM([1, 2]), "lapackqr")])) is None


@needs_lanes
def test_loops_whose_functions_are_not_lane_wise_run_one_by_one(loop_of, monkeypatch):
    monkeypatch.setattr(many_module, "lane_libraries", lambda *_: None)
    runs = simulate_many(varied(loop_of("joint PD"), 2), times=TIMES)
    assert not any(at_once(run) for run in runs)
