"""Controllers from outside are judged as designed ones are: the same verdict, and side by side."""

import math
from dataclasses import fields, is_dataclass

import casadi as ca
import control
import numpy as np
import pytest

import flexctl
from flexctl.control import design_controller
from flexctl.control.wrapped import wrap_controller
from flexctl.errors import InputError
from flexctl.loci.sources import at_rest
from flexctl.loop.closed_loop import close_around
from flexctl.model.lookup import load_model
from flexctl.model.record import BasisChoice
from flexctl.model.settings import apply_settings
from flexctl.plant.linearisation import linearise
from flexctl.plant.plant import assemble_plant
from flexctl.robustness.stiffness.margin import stiffness_margin
from flexctl.robustness.stiffness.pose_loop import Case
from flexctl.simulation.simulation import simulate
from flexctl.verdict.comparison import compare
from flexctl.verdict.evaluation import TOLERANCE, evaluate
from tests.arms import single_link, sliding_arm
from tests.designs import make_design

EARTH = (0.0, -9.81, 0.0)
WORDS = {
    "assumptions",
    "gains",
    "method",
    "wall_seconds",
    "integrator",
}  # no numbers of the verdict
NAMED = (
    ".sensor_margins",
    ".no_sensors",
    ".linear.read.of_instruments",
)  # what a law says it reads
OF_RUN = (".tracking", ".residual", ".effort", ".trajectory")


def numbers(value, path=""):
    """Yield every number of a record with its path."""
    if is_dataclass(value):
        for entry in fields(value):
            if entry.name not in WORDS:
                yield from numbers(getattr(value, entry.name), f"{path}.{entry.name}")
    elif isinstance(value, dict):
        for key, entry in value.items():
            yield from numbers(entry, f"{path}.{key}")
    elif isinstance(value, list | tuple):
        for k, entry in enumerate(value):
            yield from numbers(entry, f"{path}[{k}]")
    else:
        yield path, value


def same_numbers(one, other, without=()):
    ours, theirs = (
        {path: value for path, value in numbers(record) if not path.startswith((*NAMED, *without))}
        for record in (one, other)
    )
    assert ours.keys() == theirs.keys()
    assert len(ours) > 60
    # two ways to write down one law differ by round-off, which eigenvalues have of the largest one;
    # the steps of a run may be others then, which move it by a few times its tolerance, and rates
    # and accelerations of fast modes by more
    round_off = 4 * np.finfo(float).eps * float(np.abs(one.stability.poles).max())
    for path, value in ours.items():
        if isinstance(value, np.ndarray | float | complex):
            atol = round_off if path.startswith(".stability") else 0
            rtol = 1e-12
            if path.startswith(OF_RUN):
                rtol = (10 if path.endswith(".q") else 1000) * TOLERANCE.relative
                atol = rtol * float(np.abs(value).max(initial=0.0))
            np.testing.assert_allclose(theirs[path], value, rtol=rtol, atol=atol, err_msg=path)
        else:
            assert theirs[path] == value, path


def pd(kp, kv, m):
    return np.hstack([kp * np.eye(m), kv * np.eye(m)])


def as_matrices(designed, design, names):
    """Wrap the gains of a joint PD design as a static system."""
    gains, m = design.joint_gains, designed.plant.m
    measures = [*names, *(f"{name}_rate" for name in names)]
    return pd(gains.Gp[0], gains.Gv[0], m), measures, "gravity"


def as_function(designed, _design, _names):
    """Wrap the CasADi law of a controller, which measures coordinates of its plant."""
    n, m = designed.plant.n, designed.plant.m
    sizes = {"t": 1, "z": 0, "q_d": m, "v_d": m, "a_d": m, "y": 2 * n}
    t, z, q_d, v_d, a_d, y = (ca.SX.sym(name, size) for name, size in sizes.items())
    outputs = designed.law(0, z, q_d, v_d, a_d, y[:n], y[n:])
    names = designed.plant.coordinates
    measures = [*names, *(f"{name}.rate" for name in names)]
    return ca.Function("law", [t, z, q_d, v_d, a_d, y], outputs), measures, None


def hub():
    arm = apply_settings(load_model("single-link-hub"), ["gravity=[0.0, -9.81, 0.0]"])
    gains = {"Gp": [20.0], "Gv": [6.0]}
    return arm, make_design([0.0], [1.5], "joint-pd", gains=gains, duration=1.0), ["joint1"]


def sampled():
    arm, _, names = hub()
    gains = {"Gp": [200.0], "Gv": [20.0]}
    arm = apply_settings(arm, ["link1.limits.torque=25.0"])
    loop = {"sample_time": 0.002, "delay": 0.001}
    made = make_design([0.0], [1.0], "joint-pd", gains=gains, loop=loop, duration=1.0)
    return arm, made, names


def elastic_joint():
    settings = ["gravity=[0.0, -9.81, 0.0]", "payload.mass=0.05", "link1.EI=*10"]
    arm = apply_settings(load_model("romano-flexible-joint-link"), settings)
    gains = {"Gp": [60.0], "Gv": [30.0]}
    return arm, make_design([0.0], [0.6], "joint-pd", gains=gains), ["rotor1"]


def sliding():
    arm = sliding_arm((1.0, -2.0, -9.81))
    design = make_design([0.0, 0.5], [0.4, 0.6], "joint-pd")
    return arm, design, ["joint1", "joint2"]


@pytest.mark.slow
@pytest.mark.parametrize("wrap", [as_matrices, as_function])
@pytest.mark.parametrize(
    "case",
    [sampled, *(pytest.param(c, marks=pytest.mark.slow) for c in (hub, elastic_joint, sliding))],
)
def test_a_wrapped_copy_of_a_built_in_law_gets_the_same_verdict(case, wrap):
    arm, design, names = case()
    designed = design_controller(arm, design)
    plant = designed.plant
    system, measures, feedforward = wrap(designed, design, names)
    wrapped = wrap_controller(
        system,
        plant,
        design,
        measures=measures,
        feedforward=feedforward,
        name=design.name,
        sample_time=design.loop.sample_time,
        delay=design.loop.delay,
    )
    truth = assemble_plant(arm, BasisChoice(order=3))
    others = [assemble_plant(arm, BasisChoice(order=1), interpreted=True)]
    verdicts = [evaluate(close_around(c, truth), others=others) for c in (designed, wrapped)]

    assert verdicts[0].failed is None
    # a function hides that its wind-up of the rotors computes with the stiffness of the springs
    hidden = wrap is as_function and case is elastic_joint
    same_numbers(*verdicts, without=(".stiffness.exact", ".stiffness.path_p") if hidden else ())
    own, names = verdicts[0], [f"{name}{kind}" for kind in ("", "rate") for name in names]
    assert own.sensor_margins is None  # joint-pd names no instruments, a wrapped law what it reads
    assert "no instruments" in own.no_sensors
    read = verdicts[1].sensor_margins.readings
    assert [name.replace(".", "").replace("_", "") for name in read] == names


# 20 + 5/s + 6 s/(0.005 s + 1), its filtered derivative being 1200 - 240000/(s + 200)
PID = {
    "continuous": control.ss([[0, 0], [0, -200]], [[1], [1]], [[5, -240000]], [[1220]]),
}
PID["sampled"] = control.c2d(PID["continuous"], 2e-3, "tustin")


@pytest.fixture(scope="module")
def gravity_hub():
    return hub()


@pytest.mark.parametrize("kind", PID)
def test_integral_action_from_outside_holds_the_arm_at_its_reference(gravity_hub, kind):
    arm, design, _ = gravity_hub
    controller = wrap_controller(PID[kind], arm, design, measures=["joint1"], duration=3.0)

    verdict = evaluate(close_around(controller, assemble_plant(arm, BasisChoice(order=3))))

    assert verdict.failed is None
    assert verdict.stability.stable is True
    np.testing.assert_allclose(verdict.rest.offset, 0.0, atol=1e-9)
    assert verdict.margins.gain_db[0] > 6
    assert list(verdict.not_computed) == ["margins.min_sampling_rate"]
    assert "another one where it is sampled" in verdict.not_computed["margins.min_sampling_rate"]
    assert math.isinf(verdict.stiffness.exact.alpha_upper)
    assert any("computes with no stiffness" in sentence for sentence in verdict.assumptions)


def h_infinity_problem(G):
    """Plant of `hinfsyn`: torque disturbance and noise to angle and effort; angle measured."""
    n = G.nstates
    inputs = np.hstack([G.B, np.zeros((n, 1)), G.B])
    outputs = np.vstack([G.C, np.zeros((1, n)), G.C])
    return control.ss(G.A, inputs, outputs, [[0, 0, 0], [0, 0, 0.1], [0, 0.05, 0]])


@pytest.mark.slow
def test_a_result_of_hinfsyn_closes_the_loop_of_its_own_plant_and_is_judged_beside_a_design():
    plant = assemble_plant(load_model("single-link-hub"), BasisChoice(order=1))
    G = linearise(plant, np.array([0.5, 0.0])).to_control()["joint1", "tau_joint1"]
    problem = h_infinity_problem(G)
    result = control.hinfsyn(problem, 1, 1)

    controller = wrap_controller(
        result, plant, "hub-pd", measures=["joint1"], inputs="measurements", name="h-infinity"
    )
    loop = close_around(controller, plant)
    found = compare(plant.arm, [controller, "hub-pd"], truth_basis=BasisChoice(order=1))

    ours = flexctl.linearise(loop).to_control()["joint1", "disturbance_joint1"]
    theirs = problem.lft(result[0])[0, 0]
    w = 1j * np.logspace(-1, 2, 60)
    np.testing.assert_allclose(ours(w).ravel(), theirs(w).ravel(), rtol=1e-5)
    verdict = found.evaluations[0]
    assert verdict.failed is None
    assert verdict.stability.stable
    assert list(verdict.not_computed) == ["margins.min_sampling_rate"]
    assert found.motions == (("h-infinity", "hub-pd", "joint-pd"),)


def test_a_controller_with_a_very_fast_pole_is_run_as_its_gains_are():
    # C/(s/p + 1) with p = 2e8 rad/s delays by 5 ns: H-infinity controllers have such poles
    gains, fast = np.array([[20.0, 6.0]]), 2e8
    filtered = control.ss([[-fast]], fast * gains, [[1.0]], [[0.0, 0.0]])
    runs = [
        simulate(
            close_around(
                wrap_controller(
                    law, "single-link-hub", "hub-pd", measures=["joint1", "joint1_rate"]
                ),
                assemble_plant(load_model("single-link-hub"), BasisChoice(order=2)),
            )
        )
        for law in (filtered, gains)
    ]

    np.testing.assert_allclose(runs[0].q, runs[1].q, atol=2e-7)
    np.testing.assert_allclose(runs[0].tau, runs[1].tau, atol=1e-5)


@pytest.mark.slow
def test_controllers_and_designs_are_compared_side_by_side(gravity_hub):
    arm, design, _ = gravity_hub
    controller = wrap_controller(PID["continuous"], arm, design, measures=["joint1"], name="pid")

    found = compare(arm, [design, controller], truth_basis=BasisChoice(order=2))

    names = [evaluation.name for evaluation in found.evaluations]
    assert names == [design.name, "pid", "joint-pd"]
    assert set(found.ranking) == set(names)
    assert found.motions == (tuple(names),)
    assert found.evaluations[1].gains["D"] == [[1220.0]]
    # joint-pd as the design is: the baseline keeps its gains
    assert found.evaluations[2].residual == found.evaluations[0].residual


@pytest.mark.slow
def test_the_baseline_of_controllers_alone_has_half_the_first_frequency(gravity_hub):
    arm, design, _ = gravity_hub
    controller = wrap_controller(PID["continuous"], arm, design, measures=["joint1"], name="pid")

    found = compare(arm, [controller], truth_basis=BasisChoice(order=2))

    plant = assemble_plant(arm, BasisChoice(), interpreted=True)
    q = plant.straight(np.array([1.5]))
    M, K = plant.mass_matrix(q), plant.tangent_stiffness(q)
    held = np.linalg.eigvals(np.linalg.solve(M[1:, 1:], K[1:, 1:])).real.min()
    assert found.evaluations[-1].name == "joint-pd"
    assert found.evaluations[-1].gains["Gp"][0] == pytest.approx(held / 4 * M[0, 0], rel=1e-3)


def test_two_controllers_of_one_name_are_refused(gravity_hub):
    arm, design, _ = gravity_hub
    controller = wrap_controller(PID["continuous"], arm, design, measures=["joint1"], name="pid")

    with pytest.raises(InputError, match="designs: expected every name once, got pid twice"):
        compare(arm, [controller, controller])


@pytest.mark.slow
def test_a_law_that_may_have_a_model_of_its_own_has_no_stiffness_margin():
    arm = single_link()
    design = make_design([0.0], [0.5])
    system, measures, _ = as_function(design_controller(arm, design), design, ())
    wrapped = wrap_controller(system, arm, design, measures=measures)

    verdict = evaluate(close_around(wrapped, assemble_plant(arm, BasisChoice(order=2))))

    assert verdict.failed is None
    assert verdict.stiffness is None
    assert "which, is not known" in verdict.not_computed["stiffness"]
    with pytest.raises(InputError, match="expected a law whose use of the stiffness is known"):
        stiffness_margin(arm, wrapped)


def test_the_margin_of_linear_gains_is_unlimited_as_they_have_no_stiffness(gravity_hub):
    arm, design, _ = gravity_hub
    controller = wrap_controller(PID["continuous"], arm, design, measures=["joint1"], name="pid")

    found = stiffness_margin(arm, controller, n_path=3)

    assert math.isinf(found.exact.alpha_upper)
    assert found.exact.alpha_lower == -1.0


def test_a_law_that_depends_on_time_has_a_run_and_no_frozen_loop():
    arm = single_link()
    design = make_design([0.0], [0.0])
    sizes = {"t": 1, "z": 0, "q_d": 1, "v_d": 1, "a_d": 1, "y": 2}
    inputs = [ca.SX.sym(name, size) for name, size in sizes.items()]
    tau = ca.sin(5 * inputs[0]) - 20 * inputs[5][0] - 6 * inputs[5][1]
    law = ca.Function("law", inputs, [tau, ca.SX(0, 1)])
    wrapped = wrap_controller(law, arm, design, measures=["joint1", "joint1_rate"])

    verdict = evaluate(close_around(wrapped, assemble_plant(arm, BasisChoice(order=2))))

    assert verdict.tracking is not None
    assert verdict.stability is None
    assert not verdict.ranks
    assert "depends on the time itself" in verdict.not_computed["stability"]


def test_eigenvalue_loci_name_the_states_of_a_law_from_outside(gravity_hub):
    arm, design, _ = gravity_hub
    controller = wrap_controller(PID["continuous"], arm, design, measures=["joint1"], name="pid")
    loop = close_around(controller, assemble_plant(arm, BasisChoice(order=2), interpreted=True))

    source = at_rest(loop)

    A, names = source.matrix(0.5), source.names(0.5)
    assert names.names[-2:] == ("controller", "controller")
    slowest = np.linalg.eigvals(A)
    slowest = complex(slowest[np.abs(slowest).argmin()])
    assert names.name(A, slowest) == "controller"  # the integral is slower than the arm


def test_a_change_of_the_arm_keeps_a_law_from_outside_as_it_is(gravity_hub):
    arm, design, _ = gravity_hub
    controller = wrap_controller(PID["sampled"], arm, design, measures=["joint1"], name="pid")
    case = Case.of(apply_settings(arm, ["payload.mass=*2"]), controller.design)

    again = case.close().controller

    z, reads = np.array([0.1, -0.2]), ([0.3], [0.1])
    zero = np.zeros(1)
    given = [0.0, z, [0.5], zero, zero, *reads]
    for ours, theirs in zip(controller.law(*given), again.law(*given), strict=True):
        np.testing.assert_array_equal(np.array(ours), np.array(theirs))


@pytest.mark.slow
def test_without_a_compiler_the_same_run(gravity_hub, monkeypatch):
    arm, design, _ = gravity_hub
    controller = wrap_controller(PID["continuous"], arm, design, measures=["joint1"], name="pid")
    runs, times = [], np.linspace(0, 1, 11)
    for compiler in (None, "none"):
        if compiler:
            monkeypatch.setenv("FLEXCTL_CC", compiler)
        plant = assemble_plant(arm, BasisChoice(order=1))
        runs.append(simulate(close_around(controller, plant), times=times))

    np.testing.assert_allclose(runs[0].q, runs[1].q, atol=1e-7)
    np.testing.assert_allclose(runs[0].z, runs[1].z, rtol=1e-6, atol=1e-7)
