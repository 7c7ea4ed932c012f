"""`flexctl.eigenvalue_loci`: closed loops as they come, over time and over numbers."""

import control
import numpy as np
import pytest

import flexctl
from flexctl.errors import ComputationError, InputError
from flexctl.loop import linearise_loop
from flexctl.model import apply_settings

BASIS = flexctl.BasisChoice(order=1)
HUB = "single-link-hub"
LIFT = {"over": "gains.Gv", "between": (2.0, 40.0), "points": 3}


@pytest.fixture(scope="module")
def controller():
    return flexctl.design_controller(HUB, "hub-pd", BASIS)


@pytest.fixture(scope="module")
def loop(controller):
    return flexctl.close_loop(controller, HUB, BASIS)


def poles(controller, arm, basis=BASIS):
    """Eigenvalues at the final pose, of a loop that is closed for itself."""
    closed = flexctl.close_loop(controller, arm, basis)
    return linearise_loop(closed, controller.reference.final, 0.0).poles


def values_at(loci, k):
    return np.array([branch.values[k] for branch in loci.branches])


def assert_same(values, expected, rel=1e-8):
    """Compare two sets of eigenvalues."""
    distance = np.abs(np.subtract.outer(values, expected))
    assert len(values) == len(expected)
    assert (distance.min(axis=0) <= rel * np.abs(expected).max()).all()
    assert (distance.min(axis=1) <= rel * np.abs(expected).max()).all()


def test_a_closed_loop_and_its_arm_and_design_have_one_answer(loop):
    own = flexctl.eigenvalue_loci(loop, motion="reference", points=3)
    same = flexctl.eigenvalue_loci(
        HUB, "hub-pd", motion="reference", points=3, design_basis=BASIS, truth_basis=BASIS
    )

    assert flexctl.to_json(own) == flexctl.to_json(same)
    assert own.motion == "reference"
    assert own.frozen is not None


@pytest.mark.parametrize("redesign", [False, True])
@pytest.mark.parametrize("form", ["loop", "controller", "design"])
def test_over_a_number_of_the_arm_each_form_has_the_loops_of_its_values(form, redesign, loop):
    controller = loop.controller
    forms = {"loop": (loop,), "controller": (HUB, controller), "design": (HUB, "hub-pd")}
    bases = {"truth_basis": BASIS} if form != "loop" else {}
    bases |= {"design_basis": BASIS} if form == "design" else {}
    loci = flexctl.eigenvalue_loci(
        *forms[form], over="payload.mass", between=(0.1, 0.5), points=3, redesign=redesign, **bases
    )
    changed = apply_settings(flexctl.load_model(HUB), ["payload.mass=0.5"])
    made = flexctl.design_controller(changed, "hub-pd", BASIS) if redesign else controller

    assert_same(values_at(loci, 2), poles(made, changed))
    assert loci.varied == ("arm and law" if redesign else "true arm")
    assert (loci.unit, loci.s.tolist()) == ("kg", pytest.approx([0.1, 0.3, 0.5]))


def test_at_the_design_value_eigenvalues_are_those_of_the_loop(controller, loop):
    loci = flexctl.eigenvalue_loci(loop, **LIFT)

    assert loci.design_value == 6.0  # between two of the values
    assert_same(loci.at_design, poles(controller, HUB))
    assert loci.frequencies_at_design == pytest.approx(np.abs(loci.at_design))
    assert loci.damping_at_design == pytest.approx(
        -loci.at_design.real / np.abs(loci.at_design), rel=1e-12
    )


def test_eigenvalues_at_the_design_value_stand_in_the_order_of_their_branches(loop):
    dense = flexctl.eigenvalue_loci(loop, over="gains.Gv", between=(5.9, 6.1), points=3)
    coarse = flexctl.eigenvalue_loci(loop, over="gains.Gv", between=(5.9, 6.4), points=2)

    assert dense.at_design == pytest.approx(values_at(dense, 1))
    for branch, value in zip(coarse.branches, coarse.at_design, strict=True):
        own = next(one for one in dense.branches if one.values[0] == branch.values[0])
        assert value == pytest.approx(own.values[1], rel=1e-7)


@pytest.mark.parametrize(
    "arguments",
    [{"motion": "rest", "points": 2}, {"over": "gains.Gv", "between": (7.0, 8.0), "points": 2}],
)
def test_where_the_design_value_is_not_followed_there_is_nothing(loop, arguments):
    loci = flexctl.eigenvalue_loci(loop, **arguments)

    assert loci.at_design is None
    assert loci.frequencies_at_design is None
    assert loci.damping_at_design is None


def wrapped(system, **details):
    return flexctl.wrap_controller(
        system,
        flexctl.assemble_plant(HUB, modes=1),
        "hub-pd",
        measures=["joint1", "joint1_rate"],
        **details,
    )


PD = [[20.0, 6.0]]  # of hub-pd


@pytest.mark.slow_but("rest", "reference")
@pytest.mark.parametrize("motion", ["run", "reference", "rest"])
def test_a_wrapped_copy_of_a_law_has_its_branches(loop, motion):
    copy = wrapped(control.ss([], [], [], PD))
    own = flexctl.eigenvalue_loci(loop, motion=motion, points=3)
    loci = flexctl.eigenvalue_loci(HUB, copy, motion=motion, points=3, truth_basis=BASIS)

    assert [one.label for one in loci.branches] == [one.label for one in own.branches]
    for k in range(3):
        assert values_at(loci, k) == pytest.approx(values_at(own, k), rel=1e-9)


def test_a_wrapped_law_is_followed_over_a_number_of_the_arm():
    copy = wrapped(control.ss([], [], [], PD))
    loci = flexctl.eigenvalue_loci(
        HUB,
        copy,
        over="payload.mass",
        between=(0.1, 0.5),
        points=2,
        truth_basis=BASIS,
    )

    changed = apply_settings(flexctl.load_model(HUB), ["payload.mass=0.5"])
    assert_same(values_at(loci, 1), poles(copy, changed))  # its gains are what they are


def test_a_law_whose_matrices_are_given_is_not_redesigned():
    copy = wrapped(control.ss([], [], [], PD))
    over = {"over": "payload.mass", "between": (0.1, 0.5), "points": 2}

    with pytest.raises(InputError, match="redesign: expected a law that is designed for the arm"):
        flexctl.eigenvalue_loci(HUB, copy, redesign=True, **over)


def test_the_gains_of_a_law_from_outside_are_scaled():
    copy, twice = (wrapped(control.ss([], [], [], k * np.array(PD))) for k in (1, 2))
    over = {"over": "state_space.D", "between": (1.0, 2.0), "scaled": True, "points": 2}

    loci = flexctl.eigenvalue_loci(HUB, copy, truth_basis=BASIS, **over)

    assert_same(values_at(loci, 1), poles(twice, HUB))


@pytest.mark.slow_but("delays1")
@pytest.mark.parametrize("delays", [(0.0, 0.011), (0.004, 0.0095)])
def test_a_delay_of_several_samples_is_followed(delays):
    sampled = wrapped(control.ss([], [], [], PD, 0.004))
    loci = flexctl.eigenvalue_loci(
        HUB, sampled, over="loop.delay", between=delays, points=4, truth_basis=BASIS
    )

    assert loci.sampled
    for k, delay in enumerate(np.linspace(*delays, 4)):
        late = wrapped(control.ss([], [], [], PD, 0.004), delay=float(delay))
        values = values_at(loci, k)
        values = values[np.isfinite(values) & (values.real > -2000)]  # those of delays are faster
        expected = poles(late, HUB)
        assert_same(values, expected[expected.real > -2000], 1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("period", [0.0, 0.012])
def test_the_delay_of_an_instrument_is_followed(period):
    table = flexctl.load_design("hub-pd").table() | {"name": "late"}
    table["loop"] = {"sample_time": 0.004, "duration": 2.0}

    def design(delay):
        encoder = {"kind": "encoder", "sample_time": period, "delay": delay}
        instruments = [encoder, {"kind": "difference", "time_constant": 0.01}]
        return flexctl.Design.model_validate(table | {"instruments": instruments})

    loci = flexctl.eigenvalue_loci(
        HUB, design(0.0), over="instruments[1].delay", between=(0.0, 0.008), points=3,
        truth_basis=BASIS,
    )  # fmt: skip

    for k, delay in enumerate((0.0, 0.004, 0.008)):
        values = values_at(loci, k)
        values = values[np.isfinite(values) & (values.real > -500)]
        expected = poles(flexctl.design_controller(HUB, design(delay)), HUB)
        assert_same(values, expected[expected.real > -500], 1e-6)


def test_a_sampled_law_from_outside_is_followed_at_rest():
    lag = control.ss([[0.5]], [[0.01, 0.0]], [[1.0]], PD, 0.004)
    sampled = wrapped(lag)
    loci = flexctl.eigenvalue_loci(HUB, sampled, points=2, truth_basis=BASIS)

    assert loci.motion == "rest"
    assert loci.frozen is loci.loci
    assert_same(values_at(loci, 1), poles(sampled, HUB))
    assert any(one.label == "controller" for one in loci.branches)


def test_a_number_that_a_law_from_outside_has_not_is_refused():
    copy = wrapped(control.ss([], [], [], PD))
    with pytest.raises(InputError, match=r"gains\.Gv: expected a table gains, got nothing"):
        flexctl.eigenvalue_loci(HUB, copy, truth_basis=BASIS, **LIFT)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"points": 1}, "points: expected a whole number of at least 2, got 1"),
        ({"points": "5"}, "points: expected a whole number of at least 2, got '5'"),
        ({"truth_set": "payload.mass=1"}, "truth_set: expected list or tuple"),
        ({"points": 2.5}, "points: expected a whole number of at least 2, got 2.5"),
        ({"motion": "fast"}, "motion: expected one of 'run', 'reference', 'rest', got 'fast'"),
        ({**LIFT, "motion": "rest"}, "motion: expected none with over, got 'rest'"),
        ({"between": (1, 2)}, "between: expected over=KEY with it, got none"),
        ({"redesign": True}, "redesign: expected over=KEY with it, got none"),
        ({"over": "gains.Gv"}, "between: expected a range of two numbers with over, got None"),
        ({**LIFT, "between": (2, 2)}, "between: expected an ascending range, got 2 to 2"),
        ({**LIFT, "between": (3, 2)}, "between: expected an ascending range, got 3 to 2"),
        ({**LIFT, "between": (3, np.inf)}, "between: "),
        ({**LIFT, "over": "gains.Gq"}, "gains.Gq"),
        ({**LIFT, "over": "link9.EI"}, "link9"),
        ({**LIFT, "over": "payload"}, "payload"),
        ({**LIFT, "over": "loop.delay"}, "loop"),
        ({"design": "hub-pd"}, "design: expected none with a closed loop, got one"),
        ({"truth_basis": BASIS}, "truth_basis: expected none with a closed loop, got one"),
        ({"truth_set": ["payload.maas=1"]}, "truth_set payload.maas=1: "),
    ],
)
def test_what_makes_no_sense_is_refused_in_a_line(loop, arguments, words):
    with pytest.raises(InputError) as refusal:
        flexctl.eigenvalue_loci(loop, **arguments)

    assert words in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_what_cannot_be_computed_names_its_value():
    with pytest.raises(ComputationError, match=r"^gravity = 400: vertical-2r: .*buckle"):
        flexctl.eigenvalue_loci(
            "vertical-2r",
            "vertical-2r-pd",
            over="gravity",
            between=(1.0, 400.0),
            scaled=True,
            points=2,
            truth_basis=BASIS,
            design_basis=BASIS,
        )


def test_an_arm_without_a_design_is_refused():
    with pytest.raises(InputError, match="design: expected a design or a controller"):
        flexctl.eigenvalue_loci(HUB)


def test_the_record_is_short_and_has_a_table_for_notebooks(loop):
    loci = flexctl.eigenvalue_loci(loop, **LIFT)

    assert repr(loci).startswith("EigenvalueLoci(model=single-link-hub, design=hub-pd, ")
    assert len(repr(loci)) < 400
    assert "<caption>EigenvalueLoci</caption>" in loci._repr_html_()
    assert flexctl.explain(loci).startswith(
        "hub-pd on single-link-hub: Stable for all values of gains.Gv in the range. Slowest decay: "
    )
