"""Runs of given torques: nothing is tracked, so no error is shown, and none is judged."""

import csv
import json

import pytest
import xarray as xr
from PIL import Image

DESIGN = """\
summary = "To and fro"
source = "flexctl"
model = "single-link-hub"
method = "torque"

[reference]
kind = "bang-bang"
from = [0.3]
torque = [2.0]
duration = 0.4

[loop]
duration = 0.6
"""


@pytest.fixture
def words(tmp_path):
    """Arm, design and discretisation as a person types them."""
    path = tmp_path / "push.toml"
    path.write_text(DESIGN)
    return "single-link-hub", path, "-m", "1", "--truth-modes", "1"


def test_samples_have_torques_and_no_tip_error(flexctl, words):
    said = flexctl("simulate", *words, "--json", "--at", "0.1,0.3,0.5")
    samples = json.loads(said.out)["samples"]

    assert [sample["tau"] for sample in samples] == [[2.0], [-2.0], [0.0]]
    assert [sample["tip_error"] for sample in samples] == [None] * 3


def test_a_person_reads_a_dash_for_the_tip_error(flexctl, words):
    said = flexctl("simulate", *words, "--at", "0.1")
    (row,) = [line.split() for line in said.out.splitlines() if line.split()[:1] == ["0.1"]]

    assert row[1] == "-"
    assert "open loop: the torques are given, and nothing is measured" in said.out


def test_a_csv_file_has_no_errors_to_offer(flexctl, words, tmp_path):
    flexctl("simulate", *words, "--out", tmp_path / "run.csv")
    with (tmp_path / "run.csv").open(newline="") as file:
        columns = csv.DictReader(file).fieldnames

    assert {"joint1", "joint1.torque", "tip.x"} <= set(columns)
    assert not [c for c in columns if c.endswith(("error", "desired"))]


def test_a_netcdf_file_has_no_errors_to_offer(flexctl, words, tmp_path):
    flexctl("simulate", *words, "--out", tmp_path / "run.nc")
    with xr.open_dataset(tmp_path / "run.nc", engine="h5netcdf") as data:
        assert {"q", "tau", "tip"} <= set(data)
        assert not [name for name in data if "error" in name or "desired" in name]


def test_the_figure_is_drawn(flexctl, words, tmp_path):
    assert flexctl("simulate", *words, "--plot", tmp_path / "run.svg").status == 0
    drawn = (tmp_path / "run.svg").read_text(encoding="utf-8")

    assert "error" not in drawn.lower()
    assert (tmp_path / "run.svg").stat().st_size > 10_000


def test_the_film_is_drawn(flexctl, words, tmp_path, monkeypatch):
    monkeypatch.setattr("flexctl.view.figures.animation.N_FRAMES", 4)
    assert flexctl("simulate", *words, "--animate", tmp_path / "run.gif").status == 0
    with Image.open(tmp_path / "run.gif") as film:
        assert film.n_frames == 4


def test_a_comparison_refuses_torques_in_one_line(flexctl, words):
    said = flexctl("compare", *words)

    assert said.status == 2
    assert said.err.strip() == (
        f"flexctl: {words[1]}: reference: expected a motion, to judge by, got torques "
        "(flexctl simulate runs them)"
    )


def test_the_law_costs_nothing(flexctl, words):
    said = flexctl("count", *words[:4], "--json")

    assert json.loads(said.out)["law"] == {"mul": 0, "add": 0, "other": 0}
