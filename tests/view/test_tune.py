"""`flexctl tune` on the command line: what it prints, writes and refuses."""

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import flexctl as library
from flexctl.errors import InputError
from flexctl.model import build_file, load_design
from flexctl.model.design import Design
from flexctl.search import Compromise
from flexctl.search.tuning.asked import check_effort
from flexctl.view.commands.trading import _keep
from flexctl.view.json.known_keys import known_of_tuning
from flexctl.view.json.tuning import trade_off_json
from tests.known_keys import strange_keys

ARM, DESIGN = "single-link-hub", "hub-pd"
COARSE = ("-m", "1", "--truth-modes", "1")
QUICK = ("tune", ARM, DESIGN, *COARSE, "--starts", "1", "--jobs", "1")
LINEAR = (
    *QUICK,
    "--free",
    "gains.Gv=1:10",
    "--minimise",
    "stability.spectral_abscissa",
    "--subject",
    "margins.phase_deg>=60",
)
SOON = (*QUICK, "--evaluations", "25", "--subject", "margins.phase_deg>=60")


@pytest.fixture(scope="module")
def tuned(tmp_path_factory):
    """One tuning with all that it writes."""
    from flexctl.view.cli import run

    folder = tmp_path_factory.mktemp("tuned")
    files = {name: folder / f"own.{name}" for name in ("toml", "png", "json")}
    words = [*LINEAR, "--plot", files["png"]]
    assert run([*map(str, words), "--out", str(files["toml"])]) == 0
    assert run([*map(str, LINEAR), "--out", str(files["json"])]) == 0
    return files, json.loads(files["json"].read_text())


def test_the_answer_has_the_keys_of_the_contract(tuned):
    answer = tuned[1]
    assert answer["objective"]["after"] < answer["objective"]["before"]
    assert answer["before"]["stability"]["spectral_abscissa"] == pytest.approx(
        answer["objective"]["before"]
    )
    assert answer["after"]["stability"]["spectral_abscissa"] == answer["objective"]["after"]
    assert set(answer["values"]) == {"gains.Gv"}
    (limit,) = answer["constraints"]
    assert limit["key"] == "margins.phase_deg"
    assert limit["limit"] == 60.0
    assert limit["met"] is True
    assert limit["value"] == pytest.approx(min(answer["after"]["margins"]["phase_deg"]))
    assert answer["feasible"] is True
    assert answer["unseen"] is None
    assert answer["evaluations"] > 0
    assert answer["seconds"] > 0
    history = answer["starts"][0]["history"]
    assert len(history["evaluations"]) == len(history["objective"]) == len(history["violation"])
    (excess,) = history["excess"].values()
    assert len(excess) == len(history["violation"])
    assert [max(x, 0.0) for x in excess] == pytest.approx(history["violation"], abs=1e-9)
    assert answer["resumed"] == 0


def test_the_keys_known_before_the_work_are_those_of_the_answer(tuned):
    assert set(strange_keys(known_of_tuning(), tuned[1])) == set()


def test_the_design_in_the_file_is_judged_the_same_to_the_last_digit(tuned, flexctl):
    files, answer = tuned
    design = load_design(files["toml"])
    assert design.gains.Gv == (answer["values"]["gains.Gv"],)
    words = ["--truth-modes", "1", "--no-baseline", "--json"]
    judged = json.loads(flexctl("compare", ARM, files["toml"], *words).out)["evaluations"][0]
    for part in ("tracking", "residual", "stability", "margins", "stiffness", "effort"):
        assert judged[part] == answer["after"][part]


def test_the_file_says_how_it_was_made_and_goes_on(tuned, flexctl):
    files, answer = tuned
    text = files["toml"].read_text()
    lines = text.splitlines()
    assert lines[0].startswith("# Made by: flexctl tune single-link-hub hub-pd -m 1")
    assert lines[1] == "# From hub-pd, for single-link-hub."
    assert lines[2].startswith("# stability.spectral_abscissa: -")
    assert "margins.phase_deg: " in lines[3]
    assert lines[3].endswith("at least 60 deg: kept")
    tune = load_design(files["toml"]).tune
    assert tune.free == {"gains.Gv": (1.0, 10.0)}
    assert tune.minimise == ("stability.spectral_abscissa",)
    again = json.loads(flexctl(*LINEAR[:2], files["toml"], *QUICK[7:], *COARSE, "--json").out)
    assert again["objective"]["before"] == answer["objective"]["after"]
    assert again["objective"]["after"] <= again["objective"]["before"]
    assert [one["text"] for one in again["constraints"]] == ["margins.phase_deg >= 60.0"]


def test_the_file_of_a_design_that_is_tuned_again_keeps_its_history(tuned, tmp_path):
    first = tuned[0]["toml"]
    truth = library.BasisChoice(order=1)
    found = library.tune(
        ARM, load_design(first), starts=1, jobs=1, evaluations=2, truth_basis=truth
    )
    library.save(found, tmp_path / "again.toml")
    top = (tmp_path / "again.toml").read_text().split("summary = ")[0]

    assert top.startswith("# From own, for single-link-hub.\n")
    assert top.endswith("# Before that:\n" + first.read_text().split("summary = ")[0])
    library.save(
        library.tune(
            ARM,
            DESIGN,
            {"gains.Gv": (5.9, 6.1)},
            minimise="effort.energy",
            subject_to=[],
            starts=1,
            jobs=1,
            evaluations=2,
            truth_basis=truth,
        ),
        tmp_path / "new.toml",
    )
    assert "Before that" not in (tmp_path / "new.toml").read_text()


def test_the_figure_is_drawn(tuned):
    assert tuned[0]["png"].stat().st_size > 20_000


def test_the_table_shows_limits_numbers_and_both_verdicts(flexctl):
    said = flexctl(*LINEAR)
    assert said.status == 0, said.err
    for words in (
        "minimised: stability.spectral_abscissa",
        "at least 60 deg",
        "N m s/rad",
        "hub-pd-tuned",
        "spectral abscissa along the motion",
        "hub-pd-tuned: spectral abscissa -",
        "The limit is kept",
        "Searched over 1 free number",
    ):
        assert words in said.out, words


def test_nothing_better_is_said_plainly(flexctl):
    words = ["--free", "gains.Gv=5.9:6.1", "--minimise", "effort.saturated_seconds"]
    said = flexctl(*QUICK, *words, "--subject", "none", "--evaluations", "5")
    assert said.status == 0, said.err
    assert "Nothing clearly better than hub-pd was found within bounds and limits" in said.out


@pytest.mark.slow
def test_limits_that_cannot_be_kept_are_named(flexctl):
    words = ["--subject", "margins.phase_deg>=89", "--subject", "margins.delay_seconds>=0.2"]
    said = flexctl(*QUICK, "--free", "gains.Gv=5:7", *words, "--evaluations", "10", "--json")
    answer = json.loads(said.out)
    assert answer["feasible"] is False
    assert [one["met"] for one in answer["constraints"]] == [False, False]
    assert "keeps all limits. The nearest: " in answer["verdict"]
    assert "Not kept: phase margin" in answer["verdict"]


@pytest.mark.slow
def test_arms_that_vary_are_verified_on_unseen_ones(flexctl):
    words = ["--over", "payload.mass=uniform(0.1,0.3)", "--unseen", "3"]
    answer = json.loads(flexctl(*LINEAR, *words, "--json").out)
    assert answer["unseen"]["n"] == 3
    assert set(answer["unseen"]["worst"]) == {"truth.payload.mass"}
    assert len(answer["judged_on"]) >= 3
    assert "that tuning had not seen" in answer["verdict"]


def test_the_table_of_the_file_counts_where_nothing_is_said(tmp_path):
    table = {
        **load_design(DESIGN).table(),
        "tune": {
            "free": {"gains.Gv": [1.0, 10.0]},
            "minimise": "stability.spectral_abscissa",
            "subject_to": [],
        },
    }
    design = build_file(Design, table, "own", None)
    found = library.tune(
        ARM, design, starts=1, jobs=1, evaluations=10, truth_basis=library.BasisChoice(order=1)
    )
    assert list(found.values) == ["gains.Gv"]
    assert found.objective.metric == "stability.spectral_abscissa"
    assert found.constraints == ()
    library.save(found, tmp_path / "saved.toml")
    assert load_design(tmp_path / "saved.toml").tune.subject_to == ()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--free", "gains.Gq"], "nearest: gains.Gv"),
        (["--free", "gains.Gp=5:1"], "free: gains.Gp: expected FROM below TO, got 5:1"),
        (["--free", "gains.Gp=30:40"], "expected bounds about the value in the file, 20"),
        (["--free", "gains.Gp=a:b"], "expected FROM:TO or *FROM:*TO, got 'a:b'"),
        (["--free", "gains.Gp=0:40"], "expected bounds that the design allows, got 0"),
        (["--free", "reference.duration=0.5:2"], "expected gains or weights of the design"),
        (["--free", "gains.Gp", "--free", "gains.Gp"], "free: expected each key once"),
        (["--free", "gains", "--free", "gains.Gp"], "free: expected each number once"),
        (["--minimise", "margins.disc"], "nearest: margins.disk"),
        (["--minimise", "-1*effort.energy"], "a weight above 0"),
        (["--subject", "margins.disk"], "METRIC>=NUMBER"),
        (["--subject", "margins.gain_db<=6"], "margins.gain_db >= NUMBER, as more of it is better"),
        (["--subject", "stability.stable>=1"], "a metric of numbers"),
        (["--over", "gains.Gp=1:2"], "over: expected numbers of the arm, got gains.Gp"),
        (["--over", "payload.mass"], "KEY=SPEC or a CSV file"),
        (["--over", "payload.mass=3:1"], "flexctl: payload.mass: expected two ascending ends"),
        (
            ["--subject", "none", "--subject", "effort.peak<=9"],
            "expected none alone, got also",
        ),
        (["--subject", ""], "--subject: expected METRIC>=NUMBER or none, got nothing"),
        (["--unseen", "30"], "--unseen: expected --over KEY=SPEC with it, got none"),
        (["--evaluations", "0"], "--evaluations"),
        (["--starts", "0"], "--starts"),
        (["--seed", "-1"], "--seed"),
        (["--out", "t.txt"], "a file ending in .toml or .json"),
        (["--front", "f"], "--front: expected --against METRIC with it"),
        (
            ["--against", "effort.peak", "--front", f"{__file__}/front"],
            "--front: expected a folder to write to, got",
        ),
        (["--points", "5"], "--points: expected --against METRIC with it"),
        (["--against", "margins"], "against: expected the name of a metric"),
        (["--against", "effort.rms", "--points", "1"], "--points"),
        (["--against", "residual.settling_time"], "another metric than minimise"),
    ],
)
def test_bad_words_are_one_line(flexctl, words, expected):
    said = flexctl("tune", ARM, DESIGN, *COARSE, *words)
    assert said.status == 2
    assert expected in said.err
    assert said.err.count("\n") <= 1 or "Usage" in said.err
    assert said.out == ""


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("kane-spin-up", "kane-spin-up", "--subject", "residual.settling_time<=1"), "never comes"),
        (
            ("mohan-saha-canadarm", "mohan-saha-forced"),
            "expected a closed loop, which has gains to tune, got feedforward",
        ),
        (("subudhi-morris-2r", "subudhi-morris-bang-bang"), "got torques"),
        (("single-link-hub", "rrp-stiff"), "expected 1 number, one per joint"),
    ],
)
def test_designs_that_cannot_be_tuned_so_are_refused(flexctl, words, expected):
    said = flexctl("tune", *words)
    assert said.status == 2
    assert expected in said.err
    assert said.err.count("\n") <= 1


def test_a_limit_of_the_torque_needs_an_arm_with_limits(flexctl):
    words = ["planar-two-link", "two-link-decoupling", "--subject", "effort.peak<=limits"]
    said = flexctl("tune", *words)
    assert said.status == 2
    assert "expected an arm that limits a torque, current or voltage" in said.err


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"starts": 0}, "starts: expected a whole number"),
        ({"evaluations": 2.5}, "evaluations: expected a whole number"),
        ({"seed": -1}, "seed: expected a whole number"),
        ({"jobs": 0}, "jobs: expected a whole number"),
        ({"unseen": True}, "unseen: expected a whole number"),
        ({"minimise": ""}, "minimise: expected METRIC"),
        ({"minimise": []}, "minimise: expected a metric, got none"),
    ],
)
def test_wrong_arguments_are_refused(arguments, expected):
    with pytest.raises(InputError, match=expected):
        library.tune(ARM, DESIGN, **arguments)


def test_numbers_of_numpy_are_taken():
    effort = check_effort(starts=np.int64(3), unseen=np.int64(0), jobs=None)

    assert effort == {"starts": 3, "unseen": 0, "jobs": None}
    assert {type(number) for number in effort.values()} == {int, type(None)}


def test_a_front_says_that_its_searches_ended_early():
    key, other = "stability.spectral_abscissa", "stability.min_damping_ratio"
    found = library.trade_off(
        ARM, "hub-pd", {"gains.Gv": (1.0, 10.0)}, minimise=key, against=other,
        subject_to=[], points=2, starts=1, evaluations=2, jobs=1,
    )  # fmt: skip
    ended = [one.tuning.starts[0].status for one in found.front if one.tuning]

    assert "limit" in ended
    assert "used up all evaluations; more (--evaluations)" in library.explain(found)


@pytest.mark.slow
def test_metrics_of_a_trade_off_are_as_verdicts_have_them():
    key, other = "stability.spectral_abscissa", "stability.min_damping_ratio"  # more is better
    found = library.trade_off(
        ARM, "hub-pd", {"gains.Gv": (1.0, 10.0)}, minimise=key, against=other,
        subject_to=[], points=3, starts=1, jobs=1,
    )  # fmt: skip
    answer = trade_off_json(found)

    for one in answer["front"]:
        if one["evaluation"]:
            judged = one["evaluation"]["stability"]
            assert one["metrics"][key] == pytest.approx(judged["spectral_abscissa"], rel=1e-6)
            assert one["metrics"][other] == pytest.approx(judged["min_damping_ratio"], rel=1e-6)
    assert all(value > 0 for value in answer["tried"])


def test_a_front_has_a_file_of_the_design_that_it_began_from(tmp_path):
    own = load_design("hub-pd")
    start = Compromise(design=own, first=1.0, second=2.0, tuning=None)
    files, unwritten = _keep(SimpleNamespace(front=(start,), start=start), tmp_path)
    again = load_design(tmp_path / "hub-pd-1.toml")

    assert unwritten is None
    assert files == {"hub-pd": tmp_path / "hub-pd-1.toml"}
    assert again.gains == own.gains
    assert again.basis == own.basis


@pytest.mark.slow
def test_a_trade_off_writes_every_design(flexctl, tmp_path):
    folder, figure = tmp_path / "front", tmp_path / "front.png"
    words = ["--against", "effort.peak", "--points", "3", "--front", folder, "--plot", figure]
    said = flexctl(*SOON, *words, "--json")
    assert said.status == 0, said.err
    answer = json.loads(said.out)
    front = answer["front"]
    assert front
    key, other = "residual.settling_time", "effort.peak"
    values = [(one["metrics"][other], one["metrics"][key]) for one in front]
    assert values == sorted(values)
    assert [b for _, b in values] == sorted((b for _, b in values), reverse=True)
    for one in front:
        again = flexctl("compare", ARM, folder / one["file"], "--truth-modes", "1", "--json")
        judged = json.loads(again.out)["evaluations"]
        own = next(e for e in judged if e["design"] == Path(one["file"]).stem)
        assert own["residual"]["settling_time"] == one["metrics"][key]
        assert max(own["effort"]["peak"]) == one["metrics"][other]
    assert figure.stat().st_size > 10_000
