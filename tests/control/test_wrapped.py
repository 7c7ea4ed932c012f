"""What `wrap_controller` takes, with which signs and names, and what it refuses."""

import casadi as ca
import control
import numpy as np
import pytest
from pydantic import ValidationError

from flexctl.control import design_controller
from flexctl.control.reference import ReferenceMotion, make_reference
from flexctl.control.wrapped import wrap_controller
from flexctl.errors import InputError
from flexctl.model.design import Reference
from flexctl.model.design_writing import design_text
from flexctl.model.lookup import load_design, load_model
from flexctl.model.record import BasisChoice
from flexctl.model.settings import apply_settings
from flexctl.plant.linearisation import linearise
from flexctl.plant.plant import assemble_plant
from flexctl.view.to_json import to_json

REFERENCE = {"kind": "setpoint", "from": [0.0], "to": [0.5]}
PD = ["joint1", "joint1_rate"]


@pytest.fixture(scope="module")
def one(single_arm):
    return assemble_plant(single_arm, BasisChoice(order=2), interpreted=True)


@pytest.fixture(scope="module")
def single_arm():
    return load_model("single-link-hub")


@pytest.fixture(scope="module")
def two(two_arm):
    return assemble_plant(two_arm, BasisChoice(order=1), interpreted=True)


@pytest.fixture(scope="module")
def two_arm():
    return load_model("planar-two-link")


def torque(controller, y, y_rate, q_d=(0.5,), z=(), v_d=None):
    """Torques (m,) and z' of a controller that measures positions y and rates."""
    m = controller.plant.m
    v_d = np.zeros(m) if v_d is None else v_d
    found = controller.law(0.0, list(z), list(q_d), v_d, np.zeros(m), list(y), list(y_rate))
    return [np.array(part).ravel() for part in found]


@pytest.mark.parametrize(
    "start", [np.zeros(1), np.float64(0), range(1), (0,), [0.0], 0], ids=lambda x: type(x).__name__
)
def test_a_reference_made_in_memory_takes_arrays_of_numbers(one, start):
    reference = {"kind": "setpoint", "from": start, "to": np.array([0.5])}
    controller = wrap_controller([[20.0, 6.0]], one, reference, measures=PD)
    assert controller.reference.start.tolist() == [0.0]
    assert controller.reference.final.tolist() == [0.5]


SYSTEMS = {
    "StateSpace": control.ss([], [], [], [[20.0, 6.0]]),
    "TransferFunction": control.tf([[[20.0], [6.0]]], [[[1.0], [1.0]]]),
    "matrix": np.array([[20.0, 6.0]]),
    "list": [[20, 6]],
    "row": [20.0, 6.0],
    "lqr": (np.array([[20.0, 6.0]]), np.eye(2), np.zeros(2)),
}


@pytest.mark.parametrize("kind", SYSTEMS)
def test_inputs_are_errors_and_outputs_torques(one, kind):
    controller = wrap_controller(SYSTEMS[kind], one, REFERENCE, measures=PD)

    tau, _ = torque(controller, [0.2], [0.1])

    assert tau == pytest.approx([20 * (0.5 - 0.2) + 6 * (0 - 0.1)])
    assert controller.n_state == 0
    assert controller.sample_time is None


def test_the_gain_of_lqr_stabilises_as_it_is(one):
    linear = linearise(one, {"joint1": 0.5})
    system = linear.to_control()
    K, _, poles = control.lqr(system.A, system.B, np.eye(6), np.eye(1))
    controller = wrap_controller((K,), one, REFERENCE, measures=system.state_labels)
    rng = np.random.default_rng(0)
    q, v = rng.normal(size=(2, 3))

    tau, _ = torque(controller, q, v)

    x = np.concatenate([q - linear.q0, v])
    np.testing.assert_allclose(tau, -K @ x, rtol=1e-12)
    assert poles.real.max() < 0


@pytest.mark.filterwarnings("ignore:connect")  # python-control calls its own old function
def test_a_mixsyn_controller_closes_the_loop_that_it_was_made_for(one):
    linear = linearise(one, {"joint1": 0.5})
    plant = control.ss(linear.A_state, linear.B_state, np.eye(1, 6), 0)
    soft = control.ss(plant.A - 0.05 * np.eye(6), plant.B, plant.C, 0)  # no poles on the axis
    w1, w2 = control.tf([0.5, 1], [1, 0.1]), control.tf([0.1, 1], [0.01, 20])
    K, closed, _ = control.mixsyn(soft, w1=w1, w2=w2)
    controller = wrap_controller((K, closed, 1.0), one, REFERENCE, measures=["joint1"])

    tau, z_rate = torque(controller, [0.2], [0.0], z=np.zeros(K.nstates))

    np.testing.assert_allclose(tau, 0.3 * K.D[0, 0], atol=1e-12)
    np.testing.assert_allclose(z_rate, 0.3 * K.B[:, 0], rtol=1e-12)
    assert control.feedback(soft * K, 1).poles().real.max() < 0


def test_a_law_of_measurements_is_turned(one):
    system = control.ss([[-3.0]], [[2.0]], [[5.0]], [[-20.0]])
    controller = wrap_controller(system, one, REFERENCE, measures=["joint1"], inputs="measurements")

    tau, z_rate = torque(controller, [0.2], [0.0], z=[1.0])

    assert tau == pytest.approx([5 - 20 * (0.2 - 0.5)])
    assert z_rate == pytest.approx([-3 + 2 * (0.2 - 0.5)])


def test_named_signals_are_matched_by_name_whatever_their_order(two):
    D = np.arange(1.0, 11.0).reshape(2, 5)
    inputs = ["joint2", "joint1", "measured_joint1_rate", "desired_joint2", "tip_x"]
    system = control.ss([], [], [], D, inputs=inputs, outputs=["tau_joint2", "tau_joint1"])
    reference = {"kind": "setpoint", "from": [0.0, 0.0], "to": [0.1, 0.2]}
    controller = wrap_controller(system, two, reference)
    assert controller.measured == ("joint2", "joint1", "tip_x")

    q_d = np.array([0.4, 0.5])
    tau, _ = torque(controller, [0.3, 0.1, 0.7], [0.0, 2.0, 0.0], q_d=q_d)

    tip = one_tip(two, q_d)
    e = np.array([0.5 - 0.3, 0.4 - 0.1, 2.0, 0.5, tip - 0.7])
    np.testing.assert_allclose(tau, (D @ e)[::-1], rtol=1e-12)


def one_tip(plant, joints):
    return plant.tip(plant.straight(joints))[0]


def test_the_desired_rate_of_the_tip_is_that_of_the_rigid_arm(two):
    reference = {"kind": "setpoint", "from": [0.0, 0.0], "to": [0.1, 0.2]}
    controller = wrap_controller([[1.0], [0.0]], two, reference, measures=["tip_y_rate"])
    q_d, v_d = np.array([0.4, 0.5]), np.array([0.3, -0.2])

    tau, _ = torque(controller, [0.0], [0.0], q_d=q_d, v_d=v_d)

    h = 1e-6
    ahead, behind = (two.tip(two.straight(q_d + s * h * v_d))[1] for s in (1, -1))
    assert tau[0] == pytest.approx((ahead - behind) / (2 * h), rel=1e-8)


def test_states_of_a_sampled_system_move_on_by_whole_samples(one):
    A, B = np.array([[0.5, 0.1], [0.0, 0.9]]), np.array([[1.0], [2.0]])
    system = control.ss(A, B, [[1.0, 0.0]], [[3.0]], 0.01)
    controller = wrap_controller(system, one, REFERENCE, measures=["joint1"])

    _, z_rate = torque(controller, [0.2], [0.0], z=[1.0, -1.0])

    moved = np.array([1.0, -1.0]) + controller.sample_time * z_rate
    np.testing.assert_allclose(moved, A @ [1.0, -1.0] + B[:, 0] * 0.3, rtol=1e-13)
    np.testing.assert_array_equal(controller.initial_state(), [0.0, 0.0])
    assert controller.n_integral == 0


PERIODS = {
    "of the system": (control.ss([[0.5]], [[1]], [[1]], [[3]], 0.01), None, 0.01),
    "as asked": (control.ss([[0.5]], [[1]], [[1]], [[3]], 0.01), 0.01, 0.01),
    "not said by the system": (control.ss([[0.5]], [[1]], [[1]], [[3]], True), 0.02, 0.02),
    "of gains": (np.array([[3.0]]), 0.02, 0.02),
    "of a static system": (control.ss([], [], [], [[3.0]]), 0.02, 0.02),
    "continuous": (control.ss([[-1]], [[1]], [[1]], [[3]]), None, None),
}


@pytest.mark.parametrize("kind", PERIODS)
def test_the_sampling_period_is_found(one, kind):
    system, asked, expected = PERIODS[kind]

    controller = wrap_controller(
        system, one, REFERENCE, measures=["joint1"], sample_time=asked, delay=expected or 0.0
    )

    assert controller.sample_time == expected
    assert controller.delay == (expected or 0.0)


def as_given(design):
    """The same reference in every form that is taken."""
    motion = make_reference(design)
    return {
        "design": design,
        "record": design.reference,
        "motion": motion,
        "table": design.reference.table(),
        "name": "hub-pd",
    }


@pytest.mark.parametrize("form", ["design", "record", "motion", "table", "name"])
def test_the_reference_is_taken_in_any_form(one, form):
    design = load_design("hub-pd")
    given = as_given(design)[form]
    expected = make_reference(design)
    times = np.linspace(-0.1, 1.5, 7)

    found = wrap_controller([[1.0]], one, given, measures=["joint1"]).reference

    for ours, theirs in zip(found.sample(times), expected.sample(times), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert found.duration == expected.duration


def test_a_run_is_as_long_as_that_of_the_design_whose_reference_is_followed(one):
    plain = wrap_controller([[1.0]], one, "hub-pd", measures=["joint1"]).design.loop
    chosen = wrap_controller(
        [[1.0]], one, "hub-pd", measures=["joint1"], duration=2.0, settle_within=0.01
    ).design.loop
    by_motion = wrap_controller([[1.0]], one, REFERENCE, measures=["joint1"]).design.loop

    own = load_design("hub-pd").loop
    assert (plain.duration, plain.settle_within) == (own.duration, own.settle_within)
    assert (chosen.duration, chosen.settle_within) == (2.0, 0.01)
    assert (by_motion.duration, by_motion.settle_within) == (None, 1e-4)


def test_a_motion_in_memory_survives_what_is_done_to_designs(one):
    motion = _motion()
    controller = wrap_controller([[1.0]], one, motion, measures=["joint1"], duration=0.6)
    design = controller.design

    again = type(design).model_validate({**design.table(), "name": "again"})

    assert make_reference(again) is motion
    assert not again.reference.rests
    assert controller.duration == 0.6


def test_gravity_is_fed_forward_on_request(two_arm):
    arm = apply_settings(two_arm, ["gravity=[0.0, -9.81, 0.0]"])
    plant = assemble_plant(arm, BasisChoice(order=1), interpreted=True)
    reference = {"kind": "setpoint", "from": [0.0, 0.0], "to": [0.1, 0.2]}
    q_d = np.array([0.4, 0.5])
    torques = [
        torque(
            wrap_controller(np.eye(2), plant, reference, measures=plant.joints, feedforward=kind),
            q_d,
            [0, 0],
            q_d=q_d,
        )[0]
        for kind in (None, "gravity")
    ]

    np.testing.assert_array_equal(torques[0], [0.0, 0.0])
    np.testing.assert_allclose(torques[1], plant.gravity(plant.straight(q_d))[:2], rtol=1e-12)


def test_an_arm_or_its_name_stands_for_its_plant(single_arm):
    for plant in (single_arm, "single-link-hub"):
        controller = wrap_controller([[1.0]], plant, REFERENCE, measures=["joint1"])

        assert controller.plant.basis == BasisChoice()
        assert controller.design.model == single_arm.name


def function(sizes=(1, 0, 1, 1, 1, 1), outputs=(1, 0)):
    inputs = [ca.SX.sym(f"i{k}", size) for k, size in enumerate(sizes)]
    return ca.Function("law", inputs, [ca.SX.zeros(size) for size in outputs])


def test_a_function_gets_measurements_and_desired_values_by_their_names(one):
    inputs = [
        ca.SX.sym(name, size) for name, size in zip("tzqvay", (1, 0, 1, 1, 1, 3), strict=True)
    ]
    law = ca.Function("law", inputs, [inputs[5][0] + 10 * inputs[5][1] + 100 * inputs[5][2], []])
    measures = ["joint1", "measured_joint1_rate", "desired_joint1"]
    controller = wrap_controller(law, one, REFERENCE, measures=measures)

    tau, _ = torque(controller, [0.1], [0.2], q_d=[0.5])

    assert tau == pytest.approx([0.1 + 10 * 0.2 + 100 * 0.5])


def solver_function():
    inputs = [ca.MX.sym(f"i{k}", size) for k, size in enumerate((1, 0, 1, 1, 1, 1))]
    x, p = ca.SX.sym("x"), ca.SX.sym("p")
    root = ca.rootfinder("root", "newton", ca.Function("left", [x, p], [x**3 + x - p]))
    return ca.Function("law", inputs, [root(0.0, inputs[5]), ca.MX(0, 1)])


def named(inputs, outputs=("tau_joint1",)):
    D = np.ones((len(outputs), len(inputs)))
    return control.ss([], [], [], D, inputs=list(inputs), outputs=list(outputs))


REFUSED = {
    "text": ("K", {}, r"system: expected a StateSpace, .*, got str"),
    "response": (
        control.frd([1.0, 2.0], [1.0, 2.0]),
        {},
        "system: expected a StateSpace, .*, got F",
    ),
    "improper": (control.tf([1, 0, 0], [1, 1]), {}, "system: expected a proper transfer function"),
    "NaN": ([[np.nan]], {}, "system: expected finite numbers"),
    "three dimensions": (np.ones((1, 1, 1)), {}, "system: expected a matrix of gains, got shape"),
    "inputs": ([[1.0, 2.0]], {}, r"state_space.D: expected 1 x 1 .*, got 1 x 2"),
    "outputs": ([[1.0], [2.0]], {}, r"state_space.D: expected 1 x 1 .*, got 2 x 1"),
    "no measures": ([[1.0]], {"measures": None}, "measures: expected names of the signals"),
    "unknown": (
        [[1.0]],
        {"measures": ["joint2"]},
        r"state_space.measures\[1\]: expected a signal of single-link-hub, .*nearest: joint1",
    ),
    "gauges without places": (
        [[1.0]],
        {"measures": ["link1_y_gauge1"]},
        "gauges stand at loop.strain_gauges",
    ),
    "twice": ([[1.0, 1]], {"measures": ["joint1"] * 2}, "measures: expected every signal once"),
    "name of an input": (named(["joint7"]), {}, "inputs of the system: expected signals of"),
    "name of an output": (
        named(["joint1"], ["torque"]),
        {},
        "outputs of the system: expected tau_joint1, got torque",
    ),
    "other measures": (
        named(["joint1"]),
        {"measures": ["tip_x"]},
        r"measures: expected those that the inputs of the system name \(joint1\), got tip_x",
    ),
    "turned by name": (
        named(["joint1"]),
        {"inputs": "measurements"},
        "inputs: expected 'errors', as a system with names",
    ),
    "inputs of another kind": ([[1.0]], {"inputs": "states"}, "inputs: expected 'errors' or"),
    "rate of a continuous system": (
        control.ss([[-1]], [[1]], [[1]], [[3]]),
        {"sample_time": 0.01},
        "sample_time: expected 0, as the system has it .*c2d.*, got 0.01",
    ),
    "another rate": (
        control.ss([[0.5]], [[1]], [[1]], [[3]], 0.02),
        {"sample_time": 0.01},
        "sample_time: expected 0.02, as the system has it, got 0.01",
    ),
    "no rate": (
        control.ss([[0.5]], [[1]], [[1]], [[3]], True),
        {},
        "sample_time: expected the period",
    ),
    "a delay of nothing sampled": (
        [[1.0]],
        {"delay": 0.01},
        "loop.sample_time: expected more than 0",
    ),
    "a negative period": ([[1.0]], {"sample_time": -1.0}, "sample_time: expected at least 0"),
    "feedforward": ([[1.0]], {"feedforward": "all"}, "feedforward: expected one of 'gravity'"),
    "five inputs": (function((1, 0, 1, 1, 1)), {}, r"system: expected \(t, z, .*, got 5 inputs"),
    "other sizes": (
        function((1, 0, 1, 1, 1, 2)),
        {},
        r"of sizes \[1, 0, 1, 1, 1, 1\] -> \[1, 0\], got \[1, 0, 1, 1, 1, 2\] -> \[1, 0\]",
    ),
    "a solver": (
        solver_function(),
        {},
        "system: expected a CasADi function of elementary operations",
    ),
    "a reference of two joints": (
        [[1.0]],
        {"reference": {"kind": "setpoint", "from": [0, 0.0], "to": [1.0, 0]}},
        "reference.from: expected 1 number, one per joint",
    ),
    "no reference": ([[1.0]], {"reference": {"kind": "step"}}, "reference.kind: expected one of"),
    "torques": (
        [[1.0]],
        {
            "reference": Reference.model_validate(
                {"kind": "bang-bang", "from": [0.0], "torque": [1.0], "duration": 1.0}
            )
        },
        "reference.torque: expected no such key",
    ),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_what_does_not_fit_is_refused_in_one_line(one, kind):
    system, options, message = REFUSED[kind]
    options = {"reference": REFERENCE, "measures": ["joint1"]} | options
    if kind.startswith("name of"):
        options["measures"] = None

    with pytest.raises(InputError, match=message) as refused:
        wrap_controller(system, one, **options)

    assert "\n" not in str(refused.value)


def test_a_joint_pd_is_the_same_law_symbol_by_symbol(one, single_arm):
    design = load_design("hub-pd")
    designed = design_controller(single_arm, design, interpreted=True)
    wrapped = wrap_controller([[20, 6]], one, design, measures=PD, feedforward="gravity")
    rng = np.random.default_rng(2)
    q, v = rng.normal(size=(2, one.n))

    tau = designed.law(0, [], [0.3], [0.1], [0.0], q, v)[0]

    assert float(torque(wrapped, q[:1], v[:1], [0.3], v_d=[0.1])[0][0]) == float(tau)
    assert wrapped.collocated


def test_numbers_that_a_motion_in_memory_does_not_have_are_refused(one):
    controller = wrap_controller([[1.0]], one, _motion(), measures=["joint1"])
    table = controller.design.table()
    for key, value in (("to", [0.3]), ("from", [0.1]), ("duration", 2.0)):
        changed = {**table, "reference": {**table["reference"], key: value}}
        with pytest.raises(ValidationError, match=rf"{key}: expected that of the motion"):
            type(controller.design).model_validate(changed)


@pytest.mark.parametrize("row", [False, True])
def test_a_function_may_give_rows(two, row):
    sizes = (1, 2, 2, 2, 2, 2)
    t, z, q_d, v_d, a_d, y = (ca.SX.sym(k, n) for k, n in zip("tzqvay", sizes, strict=True))
    results = [q_d - y + z, y - q_d]
    law = ca.Function("law", [t, z, q_d, v_d, a_d, y], [x.T if row else x for x in results])
    reference = {"kind": "setpoint", "from": [0.0, 0.0], "to": [0.1, 0.2]}
    controller = wrap_controller(law, two, reference, measures=["joint1", "joint2"])
    tau, rate = torque(controller, [0.3, 0.1], [0.0, 0.0], q_d=[0.5, 0.2], z=[1.0, 2.0])

    np.testing.assert_allclose(tau, [1.2, 2.1])
    np.testing.assert_allclose(rate, [-0.2, -0.1])


def test_a_law_in_memory_is_in_no_file(one, tmp_path):
    controller = wrap_controller(function(), one, REFERENCE, measures=["joint1"])
    assert "function" not in to_json(controller.design)["state_space"]
    with pytest.raises(InputError, match="state_space: expected matrices, got a function"):
        design_text(controller.design, tmp_path)


def _motion():
    t = ca.SX.sym("t")
    return ReferenceMotion(
        function=ca.Function("reference", [t], [ca.sin(t), ca.cos(t), -ca.sin(t)]),
        duration=0.4,
        start=np.zeros(1),
        final=np.array([np.sin(0.4)]),
        rests=False,
    )
