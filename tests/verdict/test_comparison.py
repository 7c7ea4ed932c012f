"""Several designs side by side: the ranking, the baseline, what cannot be judged."""

import json
from dataclasses import replace

import numpy as np
import pytest

from flexctl.control.controller_design import design_controller
from flexctl.loop.setup import Setup, default_truth, finest_basis
from flexctl.model.design import Design
from flexctl.model.record import BasisChoice
from flexctl.model.settings import apply_settings
from flexctl.search.sweeps import sweep
from flexctl.verdict.comparison import baseline_design, compare
from flexctl.view.explain import explain
from flexctl.view.to_json import to_json
from tests.numbers_in_words import unfounded
from tests.verdict_record import verdict


def named(design, name):
    return Design.model_validate(design.table() | {"name": name, "path": None})


@pytest.fixture(scope="module")
def designs(make):
    second = {"joint_error": 300.0, "joint_rate": 0.3, "strain_energy": 1.0, "kinetic_energy": 1.0}
    second = {"weights": second | {"effort": 1e-3}}
    loop = {"duration": 2.0, "settle_within": 5e-2}
    slow = {"sample_time": 0.25, "duration": 2.0}
    build = make["design"]
    pd = {"Gp": [20.0], "Gv": [6.0]}
    return [
        named(build([0.0], [0.6], loop=loop), "ringing"),
        named(build([0.0], [0.6], loop=loop, second_loop=second), "damped"),
        named(build([0.0], [0.6], "joint-pd", gains=pd, loop=slow), "too slow"),
        named(build([0.0], [0.6], gains={"Gp": [1.0], "Gv": [1.0], "Gi": [5.0]}), "impossible"),
    ]


@pytest.fixture(scope="module")
def comparison(make, designs):
    truth = BasisChoice(kind="modes", order=2)
    said = []
    result = compare(make["single"](), designs, truth_basis=truth, progress=said.append)
    assert all(any(design.name in words for words in said) for design in designs)
    return result


def test_every_design_and_the_baseline_get_a_verdict(comparison):
    names = [evaluation.name for evaluation in comparison.evaluations]
    assert names == ["ringing", "damped", "too slow", "impossible", "joint-pd"]


def test_only_what_holds_the_arm_is_ranked(comparison):
    assert set(comparison.ranking) == {"ringing", "damped", "joint-pd"}
    by_name = {evaluation.name: evaluation for evaluation in comparison.evaluations}
    assert "bends beyond the range of the beam theory" in by_name["too slow"].failed
    assert by_name["too slow"].stability.stable is False
    assert "Gi" in by_name["impossible"].failed
    assert "too slow" in explain(comparison)
    assert "impossible" in explain(comparison)


def test_a_ranking_goes_by_residual_then_tracking_then_energy(comparison):
    by_name = {evaluation.name: evaluation for evaluation in comparison.evaluations}
    for better, worse in zip(comparison.ranking, comparison.ranking[1:], strict=False):
        first, second = by_name[better], by_name[worse]
        if (first.residual.settling_time is None) == (second.residual.settling_time is None):
            assert first.residual.tip_error_max <= second.residual.tip_error_max
        else:
            assert first.residual.settling_time is not None
    assert comparison.ranking.index("damped") < comparison.ranking.index("ringing")


@pytest.mark.parametrize(("second", "said"), [(0.5, True), (0.95, False), (2.0, False)])
def test_a_second_that_settles_well_before_the_first_is_said_to(comparison, second, said):
    best = comparison.evaluations[0]
    one, other = (
        replace(best, name=name, residual=replace(best.residual, settling_time=time))
        for name, time in (("one", 1.0), ("other", second))
    )
    words = verdict([one, other], [one, other])

    assert "Second: other with" in words
    assert ("settling sooner, within 0.5 s." in words) == said


def test_every_number_of_its_verdict_is_in_its_record(comparison):
    record = {e.name: to_json(e) for e in comparison.evaluations}
    record["run_lengths"] = to_json(comparison)["run_lengths"]
    units = {"tip_error_max": "m", "tip_error_rms": "m", "tip_error_end": "m", "seconds": "s"}
    units |= {"settling_time": "s", "spectral_abscissa": "1/s", "path_spectral_abscissa": "1/s"}
    units |= {"gain_db": "dB", "phase_deg": "deg", "delay_seconds": "s", "saturated_seconds": "s"}
    units |= {"tip_offset": "m", "offset": "rad", "holding_torque": "N m", "limit": "N m"}

    words = explain(comparison)
    for e in comparison.evaluations:  # why a design failed is quoted, not made of numbers
        words = words.replace(e.failed or "-", "-")
    assert unfounded(words, record, units) == []
    assert unfounded("its tip is 12.3456789 mm off", record, units) == ["12.3456789 mm"]


def test_its_json_is_plain_and_complete(comparison):
    answer = json.loads(json.dumps(to_json(comparison), allow_nan=False))
    assert answer.keys() >= {"model", "truth", "evaluations", "ranking"}
    assert answer["truth"]["kind"] == "modes"
    assert answer["truth"]["order"] == 2
    assert answer["ranking"] == list(comparison.ranking)
    assert [e["design"] for e in answer["evaluations"]][-1] == "joint-pd"


def test_the_baseline_has_the_bandwidth_of_the_stiffest_design(make, designs):
    # Gp and Gv times the rigid inertia at the joint: hub, link and payload about the axis
    inertia = 0.1 + 0.54 / 3 + 0.25
    baseline = baseline_design(make["single"](), designs[0])
    assert baseline.method == "joint-pd"
    assert baseline.gains.Gp[0] == pytest.approx(100 * inertia, rel=1e-3)
    assert baseline.gains.Gv[0] == pytest.approx(20 * inertia, rel=1e-3)
    assert baseline.second_loop is None


@pytest.mark.slow  # takes long
def test_there_may_be_no_baseline(make, designs):
    result = compare(make["single"](), designs[:1], baseline=False)
    assert [evaluation.name for evaluation in result.evaluations] == ["ringing"]
    assert result.truth.order == designs[0].basis.order + 2


def test_the_truth_is_the_files_or_two_modes_finer(make, rrp_arm):
    choice = BasisChoice(kind="elements", order=1)
    assert default_truth(rrp_arm, choice) == BasisChoice(kind="elements", order=4)
    assert default_truth(make["single"](), choice) == BasisChoice(kind="modes", order=3)
    setup = Setup.of(make["single"](), choice, true_arm=rrp_arm)  # that of the arm as it is
    assert setup.truth_basis == BasisChoice(kind="elements", order=4)


def test_the_truth_is_finer_than_every_design_plant_whatever_their_order(make):
    arm, gains = make["single"](), {"Gp": [20.0], "Gv": [6.0]}
    coarse, fine = (
        named(make["design"]([0.0], [0.1], "joint-pd", gains=gains, basis={"order": n}), name)
        for n, name in ((1, "coarse"), (2, "fine"))
    )
    both, points = [coarse, fine], {"gains.Gp": [20.0]}
    known, found = (
        sweep(arm, both, points, metrics="linear", jobs=1, truth_basis=basis).metrics
        for basis in (BasisChoice(order=4), None)
    )
    np.testing.assert_array_equal(*(m["stability.spectral_abscissa"] for m in (known, found)))
    said = []

    def stop(words):
        said.append(words)
        raise InterruptedError

    with pytest.raises(InterruptedError):
        compare(arm, both, progress=stop)
    assert said == ["assembling the truth plant: 4 modes per link and plane"]
    controller = design_controller(arm, coarse, BasisChoice(order=3))
    for designs, order in (([coarse], 1), ([coarse, controller], 3)):
        assert finest_basis(designs).order == order
    assert finest_basis([fine, controller], BasisChoice(order=1)).order == 3


def test_designs_are_made_for_the_arm_as_modelled_and_judged_on_the_arm_as_it_is(make):
    arm = make["single"]()
    # short, as the loop grows by itself on the other arm
    design = named(make["design"]([0.0], [0.2], loop={"duration": 2.0}), "short")
    truth = apply_settings(arm, ["link1.EI=*0.95", "payload.mass=+5%"])
    choice = BasisChoice(kind="modes", order=2)
    known, other = (
        compare(arm, [design], true_arm=t, truth_basis=choice, baseline=False).evaluations[0]
        for t in (arm, truth)
    )
    assert np.abs(known.tracking.joint_error_max[0]) < 1e-6
    assert other.tracking.joint_error_max[0] > 1e-3
    assert known.cost == other.cost
