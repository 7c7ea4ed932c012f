"""`flexctl compare`: contract, ranking, report."""

import json
import re

import pytest

from flexctl.model.lookup import load_model
from flexctl.view.cli import run
from flexctl.view.comparison_rows import metric_rows, ranked
from flexctl.view.json.known_keys import known_of_comparison
from tests.known_keys import strange_keys

QUICK = ("single-link-hub", "hub-pd", "-m", "1", "--truth-elements", "1")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """One comparison with all that it can write."""
    folder = tmp_path_factory.mktemp("compare")
    stiff = folder / "hub-stiff.toml"
    stiff.write_text(
        'summary = "Stiffer"\nsource = "flexctl"\nmodel = "single-link-hub"\nmethod = "joint-pd"\n'
        '[reference]\nkind = "cycloid"\nfrom = [0.0]\nto = [1.0]\nduration = 1.0\n'
        "[gains]\nGp = 60.0\nGv = 10.0\n[loop]\nduration = 4.0\n"
    )
    words = ["compare", *QUICK, str(stiff), "--json", "--out", str(folder / "all.json")]
    files = ["--report", str(folder / "all.html"), "--plot", str(folder / "all.svg")]
    assert run([*words, *files]) == 0
    return folder


@pytest.fixture
def answer(files):
    return json.loads((files / "all.json").read_text())


def test_the_answer_has_the_keys_of_the_contract(answer):
    assert {"model", "truth", "evaluations", "ranking", "verdict"} <= set(answer)
    keys = {"design", "method", "basis", "tracking", "residual", "effort", "stability", "margins"}
    for evaluation in answer["evaluations"]:
        assert keys | {"spillover", "cost", "failed"} <= set(evaluation)


def test_the_keys_known_before_the_work_are_those_of_the_answer(answer):
    known = known_of_comparison(len(answer["evaluations"]))
    assert set(strange_keys(known, {"scatter": None, **answer})) == set()


def test_every_ranked_design_has_a_verdict(answer):
    names = [e["design"] for e in answer["evaluations"]]

    assert {"hub-pd", "hub-stiff"} <= set(names)
    assert set(answer["ranking"]) <= set(names)


def test_the_report_refers_to_nothing_outside_itself(files):
    text = (files / "all.html").read_text()

    assert not re.search(r"https?:|<script|<link|@import|url\(", text)
    assert set(re.findall(r'src="(.{0,26})', text)) == {"data:image/svg+xml;base64,"}


def test_the_report_begins_with_the_verdict_and_names_every_design(files, answer):
    text = (files / "all.html").read_text()

    assert text.index('class="verdict') < text.index("<table") < text.index("<figure")
    for name in (e["design"] for e in answer["evaluations"]):
        assert name in text


def test_the_report_says_neither_when_nor_where_it_was_made(files):
    # but in the command that its reader gave himself, which belongs to what repeats it
    text = (files / "all.html").read_text()
    text = re.sub(r"&#34;command&#34;: .*", "", text)

    assert str(files) not in text
    assert not re.search(r"20\d\d-\d\d-\d\d", text)


def test_the_figure_is_drawn(files):
    assert (files / "all.svg").read_text().count("<path") > 50


def test_the_table_marks_the_best_of_a_row(answer):
    designs = ranked(answer)
    (row,) = [
        row for row in metric_rows(designs, load_model("single-link-hub")) if row.label == "energy"
    ]
    energies = [e["effort"]["energy"] for e in designs]

    assert row.cells[energies.index(min(energies))].best
    assert not row.cells[energies.index(max(energies))].best


@pytest.mark.parametrize(
    ("model", "units"),
    [("single-link-hub", ["mrad", "N m"]), ("theodore-ghosal-rrp", ["mrad, mm", "N m, N"])],
)
def test_forces_and_lengths_are_spoken_of_only_where_a_joint_slides(answer, model, units):
    rows = {row.label: row.unit for row in metric_rows(answer["evaluations"], load_model(model))}

    assert [rows["joint errors, largest"], rows["peak torques"]] == units
    assert not any("{" in unit for unit in rows.values())


def test_equal_designs_have_no_best(answer):
    twins = [answer["evaluations"][0]] * 2

    assert not any(
        cell.best for row in metric_rows(twins, load_model("single-link-hub")) for cell in row.cells
    )


def test_a_failed_design_is_explained_and_shown_last(answer):
    lost = {**answer["evaluations"][0], "failed": "the run ends at t = 0.1 s"}
    others = answer["evaluations"][1:]
    changed = {"ranking": [e["design"] for e in others], "evaluations": [lost, *others]}

    assert ranked(changed)[-1]["failed"] == "the run ends at t = 0.1 s"


def test_the_baseline_can_be_left_out(flexctl):
    found = json.loads(flexctl("compare", *QUICK, "--no-baseline", "--json").out)

    assert [e["design"] for e in found["evaluations"]] == ["hub-pd"]


def test_a_person_reads_the_verdict_below_the_table(flexctl):
    said = flexctl("compare", *QUICK, "--no-baseline")

    assert said.out.index("After the motion") < said.out.rindex("hub-pd")
    assert "Margins at the actuators" in said.out


def test_a_requirement_can_ask_for_stability(flexctl):
    condition = "evaluations.0.stability.stable==true"

    assert flexctl("compare", *QUICK, "--no-baseline", "--require", condition).status == 0


def test_a_requirement_that_fails_is_told_below_the_table(flexctl):
    said = flexctl("compare", *QUICK, "--require", "evaluations.0.margins.phase_deg>=170")
    assert said.status == 1
    assert "Margins at the actuators" in said.out
    assert "required evaluations.0.margins.phase_deg>=170 does not hold: it is " in said.err


@pytest.mark.parametrize(
    "text",
    [
        "margins.gain_db>=6",
        "evaluations.7.margins.disk>=6",
        "evaluations.0>=6",
        "evaluations.0.margins.gain_db==6",
        "truth.order>=x",
    ],
)
def test_a_requirement_that_cannot_be_judged_is_refused_before_the_work(flexctl, monkeypatch, text):
    def work(*_, **__):
        raise AssertionError("nothing is to be computed")

    monkeypatch.setattr("flexctl.view.commands.comparison.compare", work)
    said = flexctl("compare", *QUICK, "--require", text)
    assert said.status == 2
    assert said.out == ""
    assert said.err.startswith("flexctl: --require")
