"""Arguments of another kind: one line that names the argument, what was expected and what came."""

import control
import numpy as np
import pytest

import flexctl
from flexctl.errors import InputError
from flexctl.simulation import simulate_many

ARM = "single-link-hub"
PD = [[20.0, 6.0]]
MEASURES = ["joint1", "joint1_rate"]
LAG = control.ss([[-1.0]], [[1.0, 0.0]], [[1.0]], [[0.0, 0.0]])
SAMPLED = control.ss([[-0.1]], [[1.0, 0.0]], [[1.0]], [[0.0, 0.0]], True)


@pytest.fixture(scope="module")
def controller():
    return wrap()


@pytest.fixture(scope="module")
def loop(controller):
    return flexctl.close_loop(controller, ARM, modes=2)


def wrap(system=PD, plant=ARM, reference="hub-pd", **options):
    return flexctl.wrap_controller(system, plant, reference, **{"measures": MEASURES, **options})


def sweep(vary=None, **options):
    numbers = {"payload.mass": "normal(0.2, 0.02)"} if vary is None else vary
    return flexctl.sweep(ARM, "hub-pd", numbers, **{"samples": 2, **options})


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"plant": 3}, "model: expected an Arm, a name or a path, got int"),
        ({"plant": None}, "model: expected an Arm, a name or a path, got NoneType"),
        ({"reference": 3}, "reference: expected a table, got 3"),
        ({"reference": {}}, "reference.kind: expected a value, got nothing"),
        ({"measures": 3}, "measures: expected list or tuple or ndarray"),
        ({"measures": "joint1"}, "measures: expected list or tuple or ndarray"),
        ({"measures": [1, 2]}, "state_space.measures[1]: expected a text in quotes, got 1"),
        ({"strain_gauges": 2}, "strain_gauges: expected list or tuple or ndarray"),
        ({"sample_time": "a"}, "sample_time: expected real numbers, got 'a'"),
        ({"sample_time": [0.1]}, "sample_time: expected one number, got [0.1]"),
        ({"sample_time": True}, "sample_time: expected real numbers, got True"),
        ({"sample_time": "a", "system": LAG}, "sample_time: expected real numbers, got 'a'"),
        ({"sample_time": "a", "system": SAMPLED}, "sample_time: expected real numbers, got 'a'"),
        ({"sample_time": None, "system": SAMPLED}, "sample_time: expected the period [s]"),
        ({"system": None}, "system: expected a StateSpace, a TransferFunction or gains"),
        ({"system": "hub-pd"}, "system: expected a StateSpace, a TransferFunction or gains"),
        ({"system": np.array([[1j, 2]])}, "system: expected real numbers"),
        ({"system": [[1, 2], [3]]}, "system: expected numbers"),
        ({"delay": 0.1}, "loop.sample_time: expected more than 0, as there is a delay"),
    ],
)
def test_wrap_controller_names_the_argument(options, says):
    with pytest.raises(InputError) as caught:
        wrap(**options)

    assert says in str(caught.value)


LOOP = "expected ClosedLoop"
FROM = "(close_loop(controller, arm) makes one), got "


@pytest.mark.parametrize(
    "call", [flexctl.simulate, flexctl.evaluate, flexctl.stability_margins, flexctl.linearise]
)
def test_a_controller_is_no_loop(call, controller):
    with pytest.raises(InputError) as caught:
        call(controller)

    assert str(caught.value).startswith(f"loop: {LOOP}")
    assert str(caught.value).endswith(f"{FROM}Controller")


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda _: flexctl.load_model(3), "model: expected an Arm, a name or a path, got int"),
        (lambda _: flexctl.load_design(None), "design: expected a Design, a name or a path"),
        (lambda _: flexctl.assemble_plant(ARM, 3), "basis: expected BasisChoice"),
        (lambda _: flexctl.design_controller(ARM, 3), "design: expected a Design, a name"),
        (lambda _: flexctl.close_loop("hub-pd", ARM), "controller: expected Controller"),
        (lambda loop: flexctl.close_loop(loop.controller, ARM, "4"), "basis: expected BasisChoice"),
        (lambda loop: flexctl.simulate(loop, times="a"), "times: expected real numbers, got 'a'"),
        (lambda loop: flexctl.simulate(loop, tolerance=3), "tolerance: expected Tolerance"),
        (lambda loop: flexctl.simulate(loop, start=3), "start: expected tuple or list, got int"),
        (
            lambda loop: flexctl.simulate(loop, start=("abc", np.zeros(3))),
            "start: q: expected real numbers, got 'abc'",
        ),
        (
            lambda loop: flexctl.simulate(loop, start=(np.zeros(3), [1.0, [2.0]])),
            "start: v: expected numbers, got [1.0, [2.0]]",
        ),
        (lambda loop: flexctl.simulate(loop, step="0.001"), "step: expected real numbers, got '0"),
        (simulate_many, "loops: expected list or tuple, got ClosedLoop"),
        (lambda loop: simulate_many(one for one in [loop]), "loops: expected list or tuple, got"),
        (lambda loop: loop.truth.pose(3), "pose: expected Mapping, got int"),
        (lambda loop: loop.truth.pose({3: 1.0}), "pose[1]: expected str, got int"),
        (
            lambda loop: loop.truth.pose({"joint1": [1.0]}),
            "pose.joint1: expected one number, got [1.0]",
        ),
        (
            lambda loop: flexctl.frequency_response(flexctl.linearise(loop), pose={"joint1": 0.5}),
            "pose: expected none with a linear loop, got {'joint1': 0.5}",
        ),
        (
            lambda loop: flexctl.frequency_response(flexctl.linearise(loop), n_path=3),
            "n_path: expected none with a linear loop, got 3",
        ),
        (
            lambda loop: flexctl.frequency_response(loop, -np.arange(100.0)),
            "w: expected positive ascending frequencies [rad/s], got array([ -0., -1., -2.",
        ),
        (lambda _: flexctl.compare(ARM, 3), "designs: expected list or tuple"),
        (lambda _: flexctl.compare(ARM, [3]), "design: expected a Design, a name or a path"),
        (lambda loop: flexctl.compare(ARM, [loop]), "design: expected a Design, a name or a path"),
        (lambda _: flexctl.stiffness_margin(ARM, 3), "design: expected a Design, a name"),
        (
            lambda _: flexctl.stiffness_margin(ARM, "hub-pd", n_path="a"),
            "n_path: expected a whole number",
        ),
        (
            lambda _: flexctl.stiffness_margin(ARM, "hub-pd", n_path=True),
            "n_path: expected a whole",
        ),
        (
            lambda _: flexctl.stiffness_margin(ARM, "hub-pd", n_path=-1),
            "n_path: expected a whole number of at least 0, got -1",
        ),
        (lambda _: flexctl.stiffness_margin(ARM, "hub-pd", pose=3), "pose: expected Mapping"),
        (
            lambda _: flexctl.stiffness_margin(ARM, "hub-pd", orders=3),
            "orders: expected list or tuple (of BasisChoice), got int",
        ),
        (
            lambda _: flexctl.stiffness_margin(ARM, "hub-pd", progress=3),
            "progress: expected a function, got 3",
        ),
        (
            lambda _: flexctl.stiffness_margin(ARM, "hub-pd", errors={"payload": "a"}),
            "errors.payload: expected real numbers, got 'a'",
        ),
        (
            lambda _: flexctl.stiffness_margin(ARM, "hub-pd", errors=["payload"]),
            "errors: expected Mapping, got list",
        ),
        (
            lambda _: flexctl.stiffness_margin(ARM, "hub-pd", stiffness={"link1.y.1": "a"}),
            "stiffness.link1.y.1: expected real numbers, got 'a'",
        ),
        (
            lambda _: flexctl.compare(ARM, "hub-pd", truth_basis="modes"),
            "truth_basis: expected BasisChoice, got str",
        ),
        (lambda _: flexctl.compare(ARM, "hub-pd", design_basis=3), "design_basis: expected Basis"),
        (
            lambda loop: flexctl.linearise(loop.truth, np.zeros(7)),
            "pose: expected coordinates by name, 1 joint variables or 3 coordinates, got",
        ),
        (lambda _: sweep(3), "vary: expected Mapping, got int"),
        (lambda _: sweep({3: [1.0]}), "vary[1]: expected str, got int"),
        (lambda _: sweep(truth_vary=["payload.mass"]), "truth_vary: expected Mapping, got list"),
        (lambda _: sweep(limits=3), "limits: expected list or tuple, got int"),
        (lambda _: sweep(limits=[3]), "limits[1]: expected str, got int"),
        (lambda _: sweep(metrics=3), "metrics: expected str or list or tuple, got int"),
        (lambda _: sweep(metrics=["linear", 3]), "metrics[2]: expected str, got int"),
        (lambda _: sweep(jobs="2"), "jobs: expected a whole number of at least 1, got '2'"),
        (lambda _: sweep(jobs=True), "jobs: expected a whole number of at least 1, got True"),
        (lambda _: sweep(ledger=3), "ledger: expected str or Path or NoneType, got int"),
        (lambda _: sweep(scheduler=3), "scheduler: expected str or NoneType, got int"),
        (lambda _: sweep(progress=3), "progress: expected a function, got 3"),
        (lambda _: sweep(interrupted=3), "interrupted: expected a function, got 3"),
        (lambda _: sweep(samples=2.5), "samples: expected a whole number of at least 1, got 2.5"),
        (lambda _: sweep(latin=True), "latin: expected a whole number of at least 1, got True"),
        (lambda _: flexctl.scatter(ARM, 3, {}), "designs: expected list or tuple (of designs)"),
        (
            lambda _: flexctl.scatter(ARM, "hub-pd", ["payload.mass"]),
            "numbers: expected str or Path or Mapping, got list",
        ),
        (lambda _: flexctl.scatter(ARM, "hub-pd", {3: 1.0}), "numbers[1]: expected str, got int"),
        (lambda _: flexctl.tune(ARM, "hub-pd", progress=3), "progress: expected a function"),
        (lambda _: flexctl.tune(ARM, "hub-pd", interrupted=3), "interrupted: expected a function"),
        (
            lambda _: flexctl.trade_off(ARM, "hub-pd", against="margins.disk", progress=3),
            "progress: expected a function, got 3",
        ),
        (
            lambda _: flexctl.trade_off(ARM, "hub-pd", against="margins.disk", interrupted=3),
            "interrupted: expected a function, got 3",
        ),
        (lambda _: flexctl.time_scale_margin(3, "hub-pd"), "model: expected an Arm, a name"),
        (
            lambda _: flexctl.time_scale_margin(ARM, "hub-pd", fixed_damping="joint"),
            "fixed_damping: expected none or joints or all, got 'joint'",
        ),
        (
            lambda _: flexctl.time_scale_margin(ARM, "hub-pd", fixed_damping=["all"]),
            "fixed_damping: expected none or joints or all, got ['all']",
        ),
        (
            lambda _: flexctl.time_scale_margin(ARM, "hub-pd", progress=3),
            "progress: expected a function, got 3",
        ),
        (lambda _: flexctl.compare(ARM, "hub-pd", progress=3), "progress: expected a function"),
        (
            lambda loop: flexctl.evaluate(loop, others=loop.truth),
            "others: expected list or tuple (of Plant), got Plant",
        ),
        (lambda loop: flexctl.evaluate(loop, others=[3]), "others: expected Plant, got int"),
        (
            lambda loop: flexctl.sensor_margins(loop, 3),
            "actuators: expected StabilityMargins or NoneType, got int",
        ),
        (
            lambda loop: flexctl.close_loop(loop.controller, ARM, modes=True),
            "modes: expected a whole number in 1 .. 200, got True",
        ),
        (lambda loop: flexctl.eigenvalue_loci(loop.controller), "model: expected an Arm, a name"),
        (lambda loop: flexctl.eigenvalue_loci(loop, progress=3), "progress: expected a function"),
        (lambda _: flexctl.explain(3), "explain: expected one of Arm, BasisChoice"),
        (lambda _: flexctl.to_json(None), "to_json: expected one of Arm, BasisChoice"),
    ],
)
def test_every_public_function_names_its_argument(loop, call, says):
    with pytest.raises(InputError) as caught:
        call(loop)

    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_whole_numbers_of_numpy_are_taken(controller):
    one = np.int64(1)

    assert flexctl.BasisChoice(order=one).order == 1
    assert flexctl.close_loop(controller, ARM, modes=one).truth.basis.order == 1
    assert len(flexctl.stiffness_margin(ARM, "hub-lqg", n_path=one).path) == 1


def test_one_design_need_not_be_in_a_list():
    one = flexctl.compare(ARM, "hub-pd", baseline=False)

    assert one.ranking == ("hub-pd",)
