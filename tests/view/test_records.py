"""Every public record has a short text, a table for notebooks, plain numbers and sentences."""

import json
from dataclasses import replace
from functools import cache

import control
import numpy as np
import pytest

import flexctl
from flexctl.errors import InputError
from flexctl.model import build_file, list_designs, list_models
from flexctl.view.json.loop import simulation_json

ARM, DESIGN = "single-link-hub", "hub-pd"


@cache
def make_controller():
    return flexctl.design_controller(ARM, DESIGN)


@cache
def make_loop():
    return flexctl.close_loop(make_controller(), ARM, modes=2)


@cache
def make_record(name):
    return RECORDS[name][0]()


def make_synthesis():
    """LQR of x' = x + u as an H2 problem, whose norm is the root of 1 + sqrt(2)."""
    D = [[0, 0], [0, 1], [0, 0]]
    plant = control.ss([[1.0]], [[1.0, 1.0]], [[1.0], [0.0], [1.0]], D)
    return flexctl.synthesise(plant, 0, norm="h2", nmeas=1, ncon=1)


def margin_of(arm, design):
    return flexctl.stiffness_margin(arm, design, n_path=0)


# record, what its repr shows, what `explain` says
RECORDS = {
    "Arm": (
        lambda: flexctl.load_model("vertical-2r"),
        "Arm(name=vertical-2r, links=link1, link2, joints=revolute (flexible), revolute (flexible)",
        "link2 (flexible, flexible revolute joint); payload 1 kg, with gravity.",
    ),
    "BasisChoice": (
        lambda: flexctl.BasisChoice(kind="elements", order=1, drop_above=1234.5678),
        "BasisChoice(kind='elements', order=1, sliding='fixed', drop_above=1234.5678)",
        "1 element below 1234.57 rad/s per link and plane",
    ),
    "Certificate": (
        lambda: flexctl.certify(make_loop()),
        "Certificate(proven=True, spectral_abscissa=-2.699, states=6, relative_error=1e-12)",
        "Proven in interval arithmetic for all loops whose entries differ by up to 1e-12 of their "
        "size: every disturbance decays at 2.69 1/s at least.",
    ),
    "ClosedLoop": (
        make_loop,
        "ClosedLoop(hub-pd on single-link-hub, 2 modes)",
        "It acts on single-link-hub with 2 modes per link and plane (3 coordinates).",
    ),
    "Comparison": (
        lambda: flexctl.compare(ARM, [DESIGN], baseline=False),
        "Comparison(winner=hub-pd, ranking=hub-pd, model=single-link-hub, truth=4 elements",
        "Recommended: hub-pd.",
    ),
    "Controller": (
        make_controller,
        "Controller(hub-pd: joint-pd for single-link-hub, designed on 2 modes)",
        "Its law has 0 states and is continuous; a run lasts 4 s.",
    ),
    "ControllerStructure": (
        lambda: flexctl.ControllerStructure.pid(bounds={"Kd": (0, 5)}),
        "ControllerStructure(outputs=1, inputs=1, order=2, names=Kp, Ki, Kd)",
        "Order 2 controller of 1 x 1 channels; free: Kp, Ki, Kd.",
    ),
    "Design": (
        lambda: flexctl.load_design("rrp-stiff"),
        "Design(name=rrp-stiff, method=decoupling, model=theodore-ghosal-rrp, basis=2 modes, "
        "reference=cycloid, 0.5 s, duration=1 s",
        "rrp-stiff: method decoupling for theodore-ghosal-rrp, designed on 2 modes per link",
    ),
    "EigenvalueLoci": (
        lambda: flexctl.eigenvalue_loci(make_loop(), motion="rest", points=3),
        "EigenvalueLoci(model=single-link-hub, design=hub-pd, basis=2 modes, truth=2 modes",
        "the loop is stable all along the motion",
    ),
    "Evaluation": (
        lambda: flexctl.evaluate(make_loop()),
        "Evaluation(name=hub-pd, stable=True, settling_time=1.179, residual_tip_error=0.2409",
        "settles within 1.18 s",
    ),
    "LinearLoop": (
        lambda: flexctl.linearise(make_loop()),
        "LinearLoop(plant=LinearPlant(...), feedback=array (1, 6)",
        "is stable: the slowest eigenvalue decays at 2.7 1/s; smallest damping ratio 2.61 % at "
        "103.5 rad/s.",
    ),
    "LinearPlant": (
        lambda: flexctl.linearise(make_controller().plant),
        "LinearPlant(q0=[0. 0. 0.], tau0=[0.], M=array (3, 3)",
        "6 states: 1 rigid-body motion, first natural frequency 26.69 rad/s",
    ),
    "LoopResponses": (
        lambda: flexctl.frequency_response(make_loop()),
        "LoopResponses(design=hub-pd, model=single-link-hub, channels=('tau.joint1', 'joint1', "
        "'joint1.rate'), Ms=1.039",
        "Broken at the actuators, actuator of joint1: no limit of the gain, 67.2 deg, disk 1.27, "
        "sensitivity peak Ms = 1.04 at ",
    ),
    "Plant": (
        lambda: make_controller().plant,
        "Plant(single-link-hub, 2 modes, n=3, m=1)",
        "single-link-hub on 2 modes per link and plane: 3 coordinates, 1 actuator.",
    ),
    "SensorMargins": (
        lambda: flexctl.sensor_margins(
            flexctl.close_loop(flexctl.design_controller(ARM, "hub-lqg"), ARM, modes=2)
        ),
        "SensorMargins(readings=('joint1', 'link1.y.1', 'link1.y.2', 'joint1.rate')",
        "All readings together: disk margin 0.209 (smallest at 28.3 rad/s)",
    ),
    "StabilityMargins": (
        lambda: flexctl.stability_margins(make_loop()),
        "StabilityMargins(gain_up_db=[inf]",
        "joint1: no limit in dB, 67.2 deg, 15.1 ms of delay. All joints together: 15.1 ms of delay,"
        " disk margin 1.27",
    ),
    "StiffnessMargin": (
        lambda: margin_of("planar-two-link", "two-link-decoupling"),
        "StiffnessMargin(model=planar-two-link, design=two-link-decoupling, truth=4 elements",
        "tolerates a stiffness overestimate of up to 0.563 %",
    ),
    "Scatter": (
        lambda: flexctl.scatter(
            "single-link-hub", "hub-pd", {"payload.mass": [0.1, 0.2]}, baseline=False, jobs=1
        ),
        "Scatter(model=single-link-hub, n=2, wins={hub-pd})",
        "Judged on 2 arms with scattered payload.mass",
    ),
    "Stabilisation": (
        lambda: flexctl.stabilise([[1.0]], [[1.0]], [[1.0]], decay=1.0),
        "Stabilisation(spectral_abscissa=-",
        "Static controller: Spectral abscissa ",
    ),
    "Sweep": (
        lambda: flexctl.sweep(
            "single-link-hub", "hub-pd", {"gains.Gp": [10.0, 20.0]}, metrics="linear", jobs=1
        ),
        "Sweep(model=single-link-hub, designs=('hub-pd',), keys=('gains.Gp',), n_points=2",
        "hub-pd is stable at 2 of 2 points (100 %",
    ),
    "Synthesis": (
        make_synthesis,
        "Synthesis(kind=h2, norm=1.554, spectral_abscissa=-1.414, parameters={D[1,1]}, "
        "status=stationary",
        "Static controller: H2 norm 1.554. No small change of the free numbers makes it smaller "
        "(to first order). Spectral",
    ),
    "TimeScaleMargin": (
        lambda: flexctl.time_scale_margin("subudhi-morris-2r", "subudhi-morris-lqr"),
        "TimeScaleMargin(model=subudhi-morris-2r, design=subudhi-morris-lqr, truth=4 elements",
        "stable down to 0.00381 times",
    ),
    "TradeOff": (
        lambda: flexctl.trade_off(
            ARM,
            DESIGN,
            {"gains.Gv": (1.0, 10.0)},
            minimise="stability.spectral_abscissa",
            against="stability.min_damping_ratio",
            subject_to=[],
            points=3,
            truth_basis=flexctl.BasisChoice(order=2),
            jobs=1,
        ),
        "TradeOff(model=single-link-hub, design=hub-pd, minimise=stability.spectral_abscissa, "
        "against=stability.min_damping_ratio",
        "designs, none of which is better in both than another, from spectral abscissa",
    ),
    "Trajectory": (
        lambda: flexctl.simulate(make_loop()),
        "Trajectory(t=array (1001,), q=array (3, 1001)",
        "The run lasts 4 s. The tip error is at most 252 mm",
    ),
    "Tuning": (
        lambda: flexctl.tune(
            ARM,
            DESIGN,
            {"gains.Gv": (1.0, 10.0)},
            minimise="stability.spectral_abscissa",
            subject_to=["margins.phase_deg>=60"],
            truth_basis=flexctl.BasisChoice(order=2),
            starts=1,
            jobs=1,
        ),
        "Tuning(model=single-link-hub, design=hub-pd, objective=stability.spectral_abscissa",
        "hub-pd-tuned: spectral abscissa -",
    ),
}


def test_every_public_record_is_here():
    public = {name for name in flexctl.__all__ if isinstance(getattr(flexctl, name), type)}
    assert public == set(RECORDS)


QUICK = [pytest.param(x, marks=[pytest.mark.slow] if x == "TradeOff" else []) for x in RECORDS]


@pytest.mark.parametrize("name", QUICK)
def test_its_text_is_one_short_line(name):
    text = repr(make_record(name))

    assert text.startswith(RECORDS[name][1])
    assert len(text) < 200
    assert "\n" not in text


@pytest.mark.parametrize("name", QUICK)
def test_its_table_has_rows(name):
    table = make_record(name)._repr_html_()

    assert table.startswith(f"<table><caption>{name}</caption><tr><th")
    assert table.endswith("</td></tr></table>")
    assert table.count("<tr>") > 2


@pytest.mark.parametrize("name", QUICK)
def test_its_numbers_are_json_without_nan(name):
    answer = flexctl.to_json(make_record(name))

    assert answer
    assert json.loads(json.dumps(answer, allow_nan=False)) == answer


@pytest.mark.parametrize("name", QUICK)
def test_its_sentences_say_what_it_is(name):
    assert RECORDS[name][2] in flexctl.explain(make_record(name))


@pytest.mark.parametrize(
    "record", [flexctl.load_model(entry.name) for entry in list_models()], ids=lambda r: r.name
)
def test_an_arm_is_made_again_from_its_numbers(record):
    table = flexctl.to_json(record)
    again = build_file(flexctl.Arm, table, table.pop("name"), record.path)

    assert again == record
    assert len(repr(record)) < 200


@pytest.mark.parametrize(
    "record", [flexctl.load_design(entry.name) for entry in list_designs()], ids=lambda r: r.name
)
def test_a_design_is_made_again_from_its_numbers(record):
    table = flexctl.to_json(record)
    again = build_file(flexctl.Design, table, table.pop("name"), record.path)

    assert again == record
    assert len(repr(record)) < 200


def test_stability_margins_are_those_of_the_comparison():
    compared = flexctl.to_json(make_record("Evaluation"))["margins"]
    rate, sensors = compared.pop("min_sampling_rate"), compared.pop("sensors")
    compared.pop("sampling_rate_limited_by")

    assert rate > 0
    assert sensors is None
    assert "no instruments" in compared.pop("no_sensors")
    assert flexctl.to_json(make_record("StabilityMargins")) == compared


@pytest.mark.parametrize("name", ["LinearLoop", "LinearPlant"])
def test_poles_are_eigenvalues_of_the_named_state_space(name):
    answer = flexctl.to_json(make_record(name))
    poles, system = answer["poles"], answer["state_space"]
    own = np.array(poles["re"]) + 1j * np.array(poles["im"])
    expected = np.linalg.eigvals(np.array(system["A"]))
    nearest = abs(own[:, None] - expected).min(axis=0)

    assert nearest == pytest.approx(np.zeros(6), abs=1e-6)
    assert len(system["states"]) == len(own) == 6
    assert system["states"][0] == answer["coordinates"][0] == "joint1"
    assert np.shape(system["B"]) == (6, len(system["inputs"]))
    moving = np.array(poles["frequency"]) > 1
    damped = (np.array(poles["damping"]) * poles["frequency"])[moving]
    assert damped == pytest.approx(-own.real[moving])


def test_a_loop_is_described_as_simulate_does():
    answer, run = flexctl.to_json(make_loop()), make_record("Trajectory")
    simulated = simulation_json(make_loop(), run, run.t[:1])

    for key in ("model", "design", "method", "basis", "truth"):
        assert answer[key] == simulated[key]
    assert answer["gains"] == {"Gp": [20.0], "Gv": [6.0]}
    assert answer["torque_limit"] == [30.0]


def test_a_motion_in_memory_is_left_out_of_a_design():
    design = make_controller().design
    memory = {
        "kind": "motion",
        "from_": (0.0,),
        "to": (1.0,),
        "motion": make_controller().reference,
    }
    reference = design.reference.model_copy(update=memory)
    answer = flexctl.to_json(design.model_copy(update={"reference": reference}))

    assert answer["reference"]["kind"] == "motion"
    assert "motion" not in answer["reference"]
    assert json.dumps(answer)


def test_a_sampled_controller_says_so():
    measures = ["joint1", "joint1_rate"]
    law = [[20.0, 6.0]]
    own = flexctl.wrap_controller(law, ARM, DESIGN, measures=measures, name="own", sample_time=2e-3)

    assert flexctl.to_json(own)["sample_time"] == 2e-3
    assert flexctl.to_json(own)["gains"]["D"] == law
    assert "is sampled every 0.002 s" in flexctl.explain(own)


def test_an_unstable_linear_loop_is_called_unstable():
    loop = make_record("LinearLoop")
    other = replace(loop, feedback=-loop.feedback)

    assert "is unstable: a disturbance grows at" in flexctl.explain(other)


def test_a_failed_evaluation_shows_why():
    failed = replace(
        make_record("Evaluation"),
        failed="the arm fell",
        tracking=None,
        residual=None,
        stability=None,
    )
    assert "failed=the arm fell" in repr(failed)
    assert "stable" not in repr(failed)


def test_an_evaluation_that_never_settles_says_so():
    e = make_record("Evaluation")
    assert e.residual is not None
    other = replace(e, residual=replace(e.residual, settling_time=None))
    assert "settling_time=never" in repr(other)


def test_a_rigid_arm_is_explained_without_frequencies(tmp_path):
    model = tmp_path / "rod.toml"
    model.write_text(
        """
        summary = "Rigid rod in a horizontal plane"
        source = "test"
        gravity = [0.0, 0.0, 0.0]

        [[link]]
        joint = "revolute"
        dh = { a = 1.0 }
        length = 1.0
        mass_per_length = 0.5
        """
    )
    plant = flexctl.assemble_plant(model, modes=1)

    linear = flexctl.explain(flexctl.linearise(plant))
    assert linear == "Linear plant with 2 states: 1 rigid-body motion."
    assert "on 1 mode per link and plane: 1 coordinate, 1 actuator." in flexctl.explain(plant)


def test_a_loop_whose_law_differs_from_sample_to_sample_has_no_state_space():
    controller = flexctl.design_controller(ARM, "hub-pd-spillover")
    one = flexctl.linearise(flexctl.close_loop(controller, ARM, modes=2))
    every, cycle = flexctl.to_json(one), flexctl.to_json(replace(one, samples=(one, one)))

    assert cycle["state_space"] is None
    assert every["state_space"]["dt"] == cycle["sample_time"] == 0.01
    # of two samples that are the same, the poles are those of one
    poles = [sorted(record["poles"]["re"]) for record in (cycle, every)]
    np.testing.assert_allclose(*poles, rtol=1e-6)


def test_a_comparison_without_winner_says_so():
    comparison = make_record("Comparison")
    shown = repr(replace(comparison, ranking=()))
    assert shown.startswith("Comparison(winner=none, unranked=hub-pd, model=single-link-hub")


@pytest.mark.parametrize("write", [flexctl.to_json, flexctl.explain])
def test_what_is_no_record_is_refused_with_the_kinds(write):
    with pytest.raises(InputError, match=r": expected one of Arm, .*, Tuning, got int$"):
        write(3)
