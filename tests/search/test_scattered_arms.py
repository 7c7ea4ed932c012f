"""The same gain sets on the same sampled arms."""

from dataclasses import replace

import numpy as np
import pytest

from flexctl import compare, evaluate, load_design, load_model, scatter, to_json
from flexctl.control import design_controller
from flexctl.errors import ComputationError, InputError
from flexctl.loop import close_loop
from flexctl.model import BasisChoice, model_text, with_value
from flexctl.search import read_table
from flexctl.search.scattered_arms import _place, _summed_up
from flexctl.verdict import metrics, with_baseline
from flexctl.view.words.scatter import scatter_rows, scatter_words

ARM, TRUTH = "single-link-hub", BasisChoice(kind="elements", order=2)


@pytest.fixture(scope="module")
def soft():
    """A slower gain set than that of the catalogue, under another name."""
    design = with_value(load_design("hub-pd"), "gains.Gp", 8.0)
    return design.model_copy(update={"name": "soft"})


@pytest.fixture(scope="module")
def found(soft):
    numbers = {"payload.mass": "uniform(0.05, 0.5)", "link1.EI.y": "normal(*1, *0.2)"}
    how = {"samples": 8, "seed": 4, "jobs": 1, "truth_basis": TRUTH}
    return scatter(ARM, ["hub-pd", soft], numbers, **how)


def verdicts(found, soft, sample):
    """Judge the designs made anew on the arm of a sample, as `compare` does."""
    row = dict(zip(found.sweep.keys, found.sweep.values[3 * sample].tolist(), strict=True))
    settings = {"payload.mass": row["truth.payload.mass"], "EI": row["truth.link1.EI.y"]}
    arm = load_model(ARM)
    EI = {"y": arm.links[0].EI["y"] * settings["EI"]}
    link = arm.links[0].model_copy(update={"EI": EI})
    payload = arm.payload.model_copy(update={"mass": settings["payload.mass"]})
    truth = arm.model_copy(update={"links": (link,), "payload": payload})
    return compare(ARM, ["hub-pd", soft], true_arm=truth, truth_basis=TRUTH)


@pytest.mark.slow
def test_each_sample_is_won_by_the_design_that_compare_ranks_first(found, soft):
    winners = [verdicts(found, soft, k).ranking[0] for k in range(3)]
    sweep = found.sweep
    few = replace(
        sweep,
        values=sweep.values[:9],
        design=sweep.design[:9],
        metrics={key: x[:9] for key, x in sweep.metrics.items()},
        done=sweep.done[:9],
        refused=sweep.refused[:9],
    )
    wins = _summed_up(few, load_model(ARM)).wins
    for name in ("hub-pd", "soft"):
        assert wins[name].count == winners.count(name)
    assert wins["joint-pd"].count == wins["hub-pd"].count  # the same law under another name
    assert set(wins) == {"hub-pd", "soft", "joint-pd"}
    assert found.wins["hub-pd"].count + found.wins["soft"].count == 8
    assert len(set(winners)) > 1


@pytest.mark.slow
def test_the_worst_arm_is_a_file_that_gives_the_same_verdict(found, soft, tmp_path):
    for name, design in (("hub-pd", "hub-pd"), ("soft", soft)):
        worst = found.worst[name]
        file = tmp_path / f"{name}.toml"
        file.write_text(model_text(worst.arm, "the worst"))
        arm = load_model(file)
        assert (arm.links, arm.payload) == (worst.arm.links, worst.arm.payload)
        loop = close_loop(design_controller(ARM, design), arm, TRUTH)
        verdict = metrics(evaluate(loop))
        k = 3 * worst.sample + found.sweep.designs.index(name)
        for key in ("residual.tip_error_max", "margins.disk", "effort.energy"):
            assert found.sweep.metrics[key][k] == pytest.approx(verdict[key], rel=1e-9)


@pytest.mark.slow
def test_samples_without_a_verdict_are_the_worst_and_do_not_rank():
    # the joint loop holds a payload against gravity by its stiffness alone: too heavy a one falls
    masses = {"payload.mass": [0.1, 40.0]}
    result = scatter("vertical-2r", "vertical-2r-pd", masses, baseline=False, jobs=1)
    assert result.n == 2
    assert result.worst["vertical-2r-pd"].sample == 1
    assert result.worst["vertical-2r-pd"].why
    assert result.wins["vertical-2r-pd"].count == 1
    assert "on 1 of 2" in scatter_words(result)


@pytest.mark.slow
def test_samples_of_a_file(tmp_path):
    file = tmp_path / "arms.csv"
    file.write_text("payload.mass, link1.EI.y\n0.1,*0.9\n\n0.3,*1.1\n")
    table = read_table(file)
    assert table["payload.mass"].numbers == (0.1, 0.3)
    assert not table["payload.mass"].scaled
    assert table["link1.EI.y"].scaled
    result = scatter(ARM, "hub-pd", file, baseline=False, jobs=1, truth_basis=TRUTH)
    assert result.n == 2
    np.testing.assert_array_equal(result.sweep.values, [[0.1, 0.9], [0.3, 1.1]])
    with pytest.raises(InputError, match="as many as the table has rows, got 2 and 5"):
        scatter(ARM, "hub-pd", file, samples=5)
    file.write_text("payload.mass;link1.EI.y\n0,1;*0.9\n0,3;*1.1\n")  # as spreadsheets may write it
    assert read_table(file)["payload.mass"].numbers == (0.1, 0.3)
    both = {**table, "link1.damping_ratio": "normal(*1,*0.1)"}
    assert scatter(ARM, "hub-pd", both, baseline=False, jobs=1, truth_basis=TRUTH).n == 2


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "a row of keys and rows of numbers"),
        ("payload.mass\n", "a row of keys and rows of numbers, got 1"),
        ("1\n2\n", "keys in the first row, got 1"),
        ("payload.mass,payload.mass\n1,2\n", "each key once"),
        ("payload.mass,\n1,2\n", "each key once"),
        ("payload.mass,link1.EI\n1\n", "sample 1: expected 2 numbers, got 1"),
        ("payload.mass\nheavy\n", "payload.mass: sample 1: expected a number, got 'heavy'"),
        ("payload.mass\n1\nnan\n", "sample 2: expected a number"),
        ("payload.mass\n1\n*1\n", "numbers or factors"),
    ],
)
def test_a_file_of_samples_that_cannot_be_read_is_refused(tmp_path, text, expected):
    file = tmp_path / "arms.csv"
    file.write_text(text)
    with pytest.raises(InputError, match=r"arms\.csv: .*" + expected):
        read_table(file)
    with pytest.raises(InputError, match=r"none\.csv: expected a file"):
        read_table(tmp_path / "none.csv")


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        ({"gains.Gp": "normal(1, 0.1)"}, "numbers of the arm, got gains.Gp"),
        ({"elements": [1, 2]}, "numbers of the arm, got elements"),
        ({"payload.weight": "normal(1, 0.1)"}, "weight"),
        ({}, "at least one number"),
    ],
)
def test_only_numbers_of_the_arm_scatter(numbers, expected):
    with pytest.raises(InputError, match=expected):
        scatter(ARM, "hub-pd", numbers, jobs=1)


@pytest.mark.slow
def test_a_scatter_is_told_in_every_form(found):
    answer = to_json(found)
    assert set(answer) >= {"n", "wins", "failed", "quantiles", "worst"}
    rows = scatter_rows(found)
    assert all(len(row) == 4 for row in rows)
    assert "effort.peak [N m]" in [row[0] for row in rows]
    assert "ranks first" in scatter_words(found)
    assert "On 8 arms with scattered" in scatter_words(found)
    assert "On 1 arm with scattered" in scatter_words(replace(found, n=1))
    sweep = replace(found.sweep, done=found.sweep.done & (np.arange(len(found.sweep.done)) < 3))
    alone = scatter_words(replace(found, n=1, sweep=sweep))
    assert "only the 1 arm on which all designs were judged counts." in alone


@pytest.mark.slow
def test_places_are_those_of_the_rank_key(found):
    rng = np.random.default_rng(5)
    n = 60
    own = {
        "residual.settling_time": rng.choice([0.3, 0.5, np.inf, np.nan], n),
        "effort.saturated_seconds": rng.choice([0.0, 0.1], (n, 1)),
        "residual.tip_error_max": rng.choice([0.1, 0.2], n),
        "tracking.tip_error_rms": rng.choice([0.1, 0.2], n),
        "effort.energy": rng.random(n),
    }
    many = replace(found.sweep, metrics={**found.sweep.metrics, **own}, values=np.zeros((n, 1)))
    keys = zip(
        [{np.inf: 1}.get(t, 2 * np.isnan(t)) for t in own["residual.settling_time"]],
        own["effort.saturated_seconds"][:, 0] > 0,
        own["residual.tip_error_max"],
        own["tracking.tip_error_rms"],
        own["effort.energy"],
        strict=True,
    )
    expected = [k for _, k in sorted((key, k) for k, key in enumerate(keys))]
    place = _place(many, np.arange(n) != expected[0])
    assert np.argsort(place).tolist() == [*expected[1:], expected[0]]
    assert np.isinf(place[expected[0]])


def test_designs_that_give_the_same_run_tie():
    result = scatter(ARM, "hub-pd", {"payload.mass": [0.1, 0.2]}, jobs=1, truth_basis=TRUTH)
    assert {name: one.count for name, one in result.wins.items()} == {"hub-pd": 2, "joint-pd": 2}


def test_an_arm_that_is_refused_counts_in_no_share_and_is_not_the_worst():
    result = scatter(ARM, "hub-pd", {"payload.mass": [0.1, -0.2]}, jobs=1, truth_basis=TRUTH)
    assert (result.n, result.not_evaluated) == (1, 1)
    assert result.worst["hub-pd"].sample == 0
    assert result.failed["hub-pd"].count == 0
    assert np.isfinite(result.quantiles["hub-pd"]["residual.tip_error_max"]).all()
    assert "1 more sample is not evaluated and left out of all shares: " in scatter_words(result)
    assert "payload" in scatter_words(result)
    with pytest.raises(ComputationError, match=r"no sample is evaluated: .*at least 0, got -"):
        scatter(ARM, "hub-pd", {"payload.mass": "normal(-1, 0.5)"}, samples=1, jobs=1)


def test_the_baseline_has_the_gains_that_compare_gives_it(monkeypatch):
    # of a design without gains they follow from the first frequency, and so from the basis
    basis, sets = BasisChoice(order=4), [load_design("hub-lqg")]
    asked = []

    def stop(_arm, sets, *_words, **_how):
        asked.extend(sets)
        raise ComputationError("enough")

    monkeypatch.setattr("flexctl.search.scattered_arms.sweep", stop)
    with pytest.raises(ComputationError, match="enough"):
        scatter(ARM, sets, {"payload.mass": [0.1, 0.2]}, design_basis=basis)

    arm = load_model(ARM)
    assert asked[-1] == with_baseline(arm, sets, basis)[-1]
    assert asked[-1].gains != with_baseline(arm, sets)[-1].gains


def test_numbers_of_a_design_do_not_scatter():
    with pytest.raises(InputError, match=r"^scatter: .* got gains\.Gp of the design$"):
        scatter(ARM, "hub-pd", {"gains.Gp": [1.0, 2.0]})
