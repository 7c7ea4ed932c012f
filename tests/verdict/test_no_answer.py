"""Questions without an answer are refused, and verdicts say what speaks against the best."""

import numpy as np
import pytest

from flexctl.control import design_controller
from flexctl.errors import ComputationError, InputError
from flexctl.loop.closed_loop import close_loop
from flexctl.model.design import Design
from flexctl.model.lookup import load_design, load_model
from flexctl.model.record import BasisChoice
from flexctl.model.settings import apply_settings
from flexctl.plant.linearisation import linearise
from flexctl.plant.plant import assemble_plant
from flexctl.simulation.simulation import simulate
from flexctl.verdict.comparison import compare
from flexctl.verdict.evaluation import no_controller
from flexctl.verdict.sampling_rate import smallest_sampling_rate
from flexctl.view.explain import explain


def variant(name, **tables):
    """A catalogue design with some tables replaced."""
    table = load_design(name).table() | tables
    return Design.model_validate(table | {"name": "variant"})


@pytest.fixture(scope="module")
def hub():
    return load_model("single-link-hub")


@pytest.fixture(scope="module")
def loop(hub):
    controller = design_controller(hub, load_design("hub-pd"), BasisChoice(order=1))
    return close_loop(controller, hub, BasisChoice(order=1))


@pytest.mark.parametrize("times", [[], [0.0, np.nan], [0.0, np.inf], [1.0, 0.5], [-1.0, 0.0]])
def test_times_that_are_none_are_refused(loop, times):
    with pytest.raises(InputError, match="times"):
        simulate(loop, times=np.array(times))


def test_a_run_of_no_length_is_refused(loop):
    with pytest.raises(InputError, match="duration"):
        simulate(loop, times=np.array([0.0]), duration=0.0)


def test_a_comparison_of_nothing_is_refused(hub):
    with pytest.raises(InputError, match="designs"):
        compare(hub, [])


def test_a_stiffest_design_that_cannot_be_made_still_leaves_a_verdict(hub):
    impossible = variant("hub-pd", method="decoupling", gains={"Gp": 1e4, "Gv": 1.0, "Gi": 1e6})
    result = compare(hub, [impossible], truth_basis=BasisChoice(order=1))

    assert "Gi" in result.evaluations[0].failed
    assert result.evaluations[1].name == "joint-pd"


def test_a_design_without_a_controller_keeps_its_settling_band():
    design = variant("hub-pd", loop={"settle_within": 3e-3})
    basis = BasisChoice(order=1)

    assert no_controller(design, basis, basis, "it has none").settle_within == 3e-3


def test_a_csv_reference_that_outlasts_the_run_leaves_no_rest_to_judge(hub, tmp_path):
    (tmp_path / "long.csv").write_text("t,joint1\n0,0\n1,0.5\n2,1\n", encoding="utf-8")
    design = variant(
        "hub-pd", reference={"kind": "csv", "file": "long.csv"}, loop={"duration": 1.5}
    )
    design = design.model_copy(update={"path": tmp_path / "design.toml"})
    result = compare(hub, [design], truth_basis=BasisChoice(order=1), baseline=False)

    assert result.evaluations[0].residual is None
    assert "the run of 1.5 s does not last longer than its reference of 2 s" in explain(result)


def test_integral_action_of_some_joints_only_is_refused():
    with pytest.raises(ValueError, match="all above 0, or none"):
        variant("two-link-decoupling", gains={"Gp": 9.0, "Gv": 6.0, "Gi": [5.0, 0.0]})


def test_a_link_that_buckles_under_its_weight_is_no_equilibrium(hub):
    arm = apply_settings(hub, ["gravity=[0.0, -9.81, 0.0]", "link1.EI=*0.02"])
    plant = assemble_plant(arm, BasisChoice(order=2), interpreted=True)
    with pytest.raises(ComputationError, match="buckle"):
        linearise(plant, {"joint1": np.pi / 2})


def test_an_arm_that_falls_has_no_frequencies(hub):
    arm = apply_settings(hub, ["gravity=[0.0, -9.81, 0.0]"])
    plant = assemble_plant(arm, BasisChoice(order=2), interpreted=True)
    with pytest.raises(ComputationError, match="falls"):
        linearise(plant, {"joint1": np.pi / 2}).frequencies()


def test_named_gauges_are_used_or_refused_also_on_the_same_basis(hub):
    design = variant("hub-pd", loop={"strain_gauges": [0.5]})
    controller = design_controller(hub, design, BasisChoice(order=2))
    with pytest.raises(InputError, match="strain_gauges"):
        close_loop(controller, hub, BasisChoice(order=2))


@pytest.mark.slow  # a fine scan beside it
def test_narrow_unstable_bands_of_the_sampling_rate_are_found():
    # a scan in steps of 1 Hz finds this loop unstable at 62-65, 688-696 and 1460-1475 Hz
    arm = load_model("theodore-ghosal-rrp")
    controller = design_controller(arm, load_design("rrp-stiff-decoupling"))
    from flexctl.loop.linear import linearise_loop

    loop = close_loop(controller, arm, BasisChoice(kind="elements", order=4))
    linear = linearise_loop(loop, controller.reference.final, 0.0)

    assert smallest_sampling_rate(linear) == pytest.approx(1475.5, rel=1e-3)


@pytest.mark.slow
def test_the_verdict_warns_of_thin_margins():
    arm = load_model("theodore-ghosal-rrp")
    truth = BasisChoice(kind="modes", order=2)
    result = compare(arm, [load_design("rrp-stiff")], truth_basis=truth, baseline=False)

    assert "Warning" in explain(result)
    assert "margins are thin" in explain(result)
