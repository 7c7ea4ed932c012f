"""Designs that follow different motions do not compare, and a comparison says so."""

import pytest

from flexctl.control import design_controller, make_reference
from flexctl.loop.closed_loop import close_loop
from flexctl.model.lookup import load_design, load_model
from flexctl.model.record import BasisChoice
from flexctl.verdict.comparison import by_motion, compare
from flexctl.view.explain import explain
from flexctl.view.to_json import to_json

ARM = load_model("single-link-hub")
DESIGN = load_design("hub-pd")


def variant(name, reference=(), **tables):
    table = DESIGN.table() | {"name": name, "path": DESIGN.path} | tables
    table["reference"] = table["reference"] | dict(reference)
    return DESIGN.model_validate(table)


VARIANTS = {
    "another end": {"reference": {"to": [1.0]}},
    "another start": {"reference": {"from": [0.1]}},
    "another way": {"reference": {"kind": "quintic"}},
    "slower": {"reference": {"duration": [1.1]}},
}


def motions_of(*designs):
    return by_motion(designs, [make_reference(design) for design in designs])


@pytest.mark.parametrize("change", VARIANTS)
def test_motions_that_differ_are_told_apart(change):
    other = variant("other", **VARIANTS[change])

    assert motions_of(DESIGN, other) == (("hub-pd",), ("other",))


def test_the_same_motion_under_other_gains_is_the_same():
    other = variant("other", gains={"Gp": [30.0], "Gv": [7.0]})

    assert motions_of(DESIGN, other) == (("hub-pd", "other"),)


def test_round_off_makes_no_other_motion():
    again = variant("again", reference={"duration": [1.0 + 1e-12]})

    assert motions_of(DESIGN, again) == (("hub-pd", "again"),)


def test_round_off_makes_no_other_length_of_a_run():
    usual = variant("usual", loop={})
    again = variant("again", {"duration": [1.0 + 1e-12]}, loop={})
    basis = BasisChoice(order=1)
    found = compare(ARM, [usual, again], truth_basis=basis, design_basis=basis, baseline=False)

    assert found.run_lengths == ((1.5, ("usual", "again")),)


def test_a_comparison_says_it_in_its_verdict_and_in_its_numbers():
    other = variant("other", reference={"to": [1.0]})
    basis = BasisChoice(order=1)
    found = compare(ARM, [DESIGN, other], truth_basis=basis, design_basis=basis, baseline=False)

    assert to_json(found)["motions"] == [["hub-pd"], ["other"]]
    assert "follow 2 different motions (hub-pd; other)" in explain(found)
    assert "does the ranking" in explain(found)
    assert "The runs last" not in explain(found)


def test_a_comparison_tells_runs_of_different_length():
    longer = variant("longer", loop={"duration": 4.5})
    basis = BasisChoice(order=1)
    found = compare(ARM, [longer, DESIGN], truth_basis=basis, design_basis=basis, baseline=False)

    assert found.motions == (("longer", "hub-pd"),)
    assert found.run_lengths == ((4.0, ("hub-pd",)), (4.5, ("longer",)))
    assert to_json(found)["run_lengths"][1] == {"seconds": 4.5, "designs": ["longer"]}
    assert "The runs last 4 s (hub-pd) and 4.5 s (longer): slow errors" in explain(found)
    assert "motions" not in explain(found)


def test_a_comparison_of_one_motion_says_nothing_of_it():
    basis = BasisChoice(order=1)
    found = compare(ARM, [DESIGN], truth_basis=basis, design_basis=basis, baseline=False)

    assert found.motions == (("hub-pd",),)
    assert "motions" not in explain(found)


# --- what a law is said to measure


@pytest.mark.parametrize("order", [1, 2], ids=["as modelled", "finer"])
def test_joint_pd_is_not_said_to_see_strain_gauges(order):
    loop = close_loop(design_controller(ARM, DESIGN), ARM, BasisChoice(order=order))
    said = " ".join(loop.assumptions)

    assert "strain gauges" not in said
    assert "full state" not in said
    assert "it measures joint variables and rates only" in said


def test_a_law_that_reads_the_links_is_said_to():
    arm, design = load_model("planar-two-link"), load_design("two-link-decoupling")
    controller = design_controller(arm, design, BasisChoice(order=1), interpreted=True)

    assert not controller.collocated
    assert "strain gauges" in " ".join(
        close_loop(controller, arm, BasisChoice(order=2)).assumptions
    )


def test_joint_pd_on_flexible_joints_reads_rotors_only():
    arm, design = load_model("vertical-2r"), load_design("vertical-2r-pd")
    controller = design_controller(arm, design, BasisChoice(order=1), interpreted=True)

    assert controller.collocated
    assert "strain gauges" not in " ".join(
        close_loop(controller, arm, BasisChoice(order=2)).assumptions
    )


def test_the_baseline_follows_the_shaped_motion_of_a_design():
    # a mode of the design's own loop, which the softer one of the baseline may not have
    ZVD = {"kind": "ZVD", "frequency": "loop1"}
    gains = {"Gp": [2500.0], "Gv": [100.0]}
    shaped = variant("shaped", {"shaper": ZVD}, method="decoupling", gains=gains)
    basis = BasisChoice(order=1)
    found = compare(ARM, [shaped, DESIGN], truth_basis=basis, design_basis=basis)
    own = found.evaluations[0].gains["shaper"]

    assert to_json(found)["motions"] == [["shaped", "joint-pd"], ["hub-pd"]]
    assert found.evaluations[2].gains["shaper"]["times"] == pytest.approx(own["times"])


@pytest.mark.parametrize("shaper", [{"kind": "ZV"}, {"kind": "EI", "frequency": 12.0}])
def test_a_shaped_motion_is_another_one(shaper):
    shaped = variant("shaped", {"shaper": shaper})
    designs = DESIGN, shaped
    motions = [design_controller(ARM, one, interpreted=True).reference for one in designs]

    assert by_motion(designs, motions) == (("hub-pd",), ("shaped",))
