"""An answer can be repeated from what it says of itself."""

import json
import shlex
from pathlib import Path

import numpy as np
import pytest

from flexctl.view.cli import run
from flexctl.view.commands import frequency, inspection
from flexctl.view.provenance import provenance

xarray = pytest.importorskip("xarray")
MODEL = """
summary = "One link"
source = "flexctl"
gravity = [0.0, -9.81, 0.0]
[[link]]
joint = "revolute"
length = 0.8
mass_per_length = 0.5
EI = { y = 30.0 }
damping_ratio = [0.02, 0.03]
[payload]
mass = 0.2
[expect."mass"]
value = 0.6
rtol = 1e-6
from = "0.5 * 0.8 + 0.2"
"""
DESIGN = """
summary = "A motion from a file, with a second loop"
source = "flexctl"
model = "arm"
method = "decoupling"
[basis]
kind = "modes"
order = 1
[reference]
kind = "csv"
file = "motion.csv"
[gains]
Gp = 100.0
Gv = 20.0
[second_loop]
weights = { joint_error = 300.0, joint_rate = 0.3, strain_energy = 1.0, effort = 1e-4 }
[loop]
duration = 0.4
"""
MOTION = "t,joint1\n0,0\n0.1,0.02\n0.2,0.1\n0.3,0.12\n"
OWN_LAW = """
summary = "Joint PD of matrices in a file"
source = "flexctl"
model = "single-link-hub"
method = "state-space"
[basis]
order = 1
[reference]
kind = "cycloid"
from = [0.0]
to = [0.5]
duration = 1.0
[state_space]
file = "pd.npz"
measures = ["joint1", "joint1_rate"]
"""
OPTIONS = ["--truth-modes", "1", "--truth-set", "payload.mass=+40%", "--damping", "0.05"]


def toml(value):
    """Write plain values as TOML: tables inline."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(k)} = {toml(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    return json.dumps(value)


def write(folder, name, table):
    lines = [f"{json.dumps(key)} = {toml(value)}\n" for key, value in table.items()]
    (folder / f"{name}.toml").write_text("".join(lines))
    return folder / f"{name}.toml"


@pytest.fixture(scope="module")
def first(tmp_path_factory):
    """A run with all that it writes."""
    folder = tmp_path_factory.mktemp("first")
    for name, text in (("arm.toml", MODEL), ("gains.toml", DESIGN), ("motion.csv", MOTION)):
        (folder / name).write_text(text)
    words = ["simulate", f"{folder / 'arm.toml'}", f"{folder / 'gains.toml'}", *OPTIONS]
    assert run([*words, "--out", f"{folder / 'run.json'}"]) == 0
    return folder


@pytest.mark.slow
def test_a_run_is_repeated_from_its_json_alone(first, tmp_path, flexctl):
    answer = json.loads((first / "run.json").read_text())
    made = answer["provenance"]
    arm = write(tmp_path, answer["model"], made["model"])
    (design,) = (write(tmp_path, *pair) for pair in made["designs"].items())
    for name, text in made["files"].items():
        (tmp_path / name).write_text(text)
    said = flexctl("simulate", arm, design, *made["settings"], "--json")
    again = json.loads(said.out)

    assert said.status == 0, said.err
    assert again["samples"] == answer["samples"]
    assert again["energy"] == answer["energy"]
    assert again["provenance"]["gains"] == made["gains"]


def test_gains_are_those_that_act_and_tolerances_those_of_the_run(first):
    made = json.loads((first / "run.json").read_text())["provenance"]
    gains = made["gains"]["gains"]

    assert gains["Gp"] == [100.0]
    assert (len(gains["K"]), len(gains["K"][0])) == (1, 4)
    assert made["tolerances"]["relative"] == 1e-10
    assert made["tolerances"]["integrator"] == "auto"


def test_the_command_is_the_line_that_was_typed_without_folders(first):
    made = json.loads((first / "run.json").read_text())["provenance"]
    words = shlex.split(made["command"])

    assert words == ["flexctl", "simulate", "arm.toml", "gains.toml", *OPTIONS, "--out", "run.json"]


def test_a_flag_that_is_turned_off_is_a_setting(flexctl):
    said = flexctl("inspect", "single-link-hub", "--no-foreshortening", "--json")

    assert json.loads(said.out)["provenance"]["settings"] == ["--no-foreshortening"]


@pytest.mark.parametrize(
    "words",
    [
        ["list"],
        ["inspect", "single-link-hub", "-m", "1"],
        ["count", "single-link-hub", "hub-pd", "-m", "1"],
        [
            *("margin", "planar-two-link", "two-link-decoupling", "-m", "1"),
            *("--truth-modes", "1", "--path", "0", "--no-structured"),
        ],
        ["track", "single-link-hub", "hub-pd", "-m", "1", "--truth-modes", "1", "--points", "3"],
    ],
    ids=lambda words: words[0],
)
def test_every_command_says_what_its_answer_was_made_of(words, flexctl):
    said = flexctl(*words, "--json")
    made = json.loads(said.out)["provenance"]

    keys = {"version", "model", "designs", "settings", "gains", "tolerances", "command", "files"}
    assert set(made) == keys
    assert made["command"] == shlex.join(["flexctl", *words, "--json"])
    assert bool(made["model"]) == (len(words) > 1)
    assert set(made["gains"]) == set(made["designs"])


def test_netcdf_carries_it_as_an_attribute(first, tmp_path, flexctl):
    path = tmp_path / "run.nc"
    said = flexctl("simulate", first / "arm.toml", first / "gains.toml", *OPTIONS, "--out", path)
    with xarray.open_dataset(path, engine="h5netcdf") as data:
        made = json.loads(data.attrs["provenance"])

    assert said.status == 0
    expected = json.loads((first / "run.json").read_text())["provenance"]
    assert {key: made[key] for key in ("model", "designs", "gains", "files")} == {
        key: expected[key] for key in ("model", "designs", "gains", "files")
    }


@pytest.mark.parametrize("then", [Path.unlink, lambda path: path.write_text(MODEL + "[truth]")])
def test_the_arm_that_is_told_is_the_one_that_was_judged(then, tmp_path, flexctl, monkeypatch):
    """Its file was moved, or edited, while that took its time."""
    arm = tmp_path / "arm.toml"
    arm.write_text(MODEL)
    own = inspection.inspect_arm

    def inspect(*given):
        then(arm)
        return own(*given)

    monkeypatch.setattr(inspection, "inspect_arm", inspect)
    said = flexctl("inspect", arm, "-m", "1", "--set", "payload.mass=0.1", "--json")
    told = json.loads(said.out)["provenance"]["model"]

    assert (said.status, said.err) == (0, "")
    assert told["payload"] == {"mass": 0.2}  # before any setting
    assert "truth" not in told


def test_an_answer_is_told_although_matrices_of_its_design_are_gone(tmp_path, flexctl, monkeypatch):
    np.savez(tmp_path / "pd.npz", D=[[20.0, 6.0]])
    (tmp_path / "own.toml").write_text(OWN_LAW)
    own = frequency.frequency_response

    def respond(*given, **how):
        (tmp_path / "pd.npz").unlink()
        return own(*given, **how)

    monkeypatch.setattr(frequency, "frequency_response", respond)
    words = ["single-link-hub", tmp_path / "own.toml", "--truth-modes", "1"]
    said = flexctl("bode", *words, "--json")

    assert (said.status, said.err) == (0, "")
    assert json.loads(said.out)["provenance"]["gains"] == {}


def test_without_a_command_line_there_is_none():
    assert provenance()()["command"] == ""


def test_the_model_of_the_true_arm_and_what_changed_it_are_kept(tmp_path, flexctl):
    soft = tmp_path / "soft.toml"
    soft.write_text(MODEL)
    options = ["--truth-model", soft, "--truth-set", "payload.mass=0.3", "--damping", "0.05"]
    words = ["track", "single-link-hub", "hub-pd", "-m", "1", "--over", "gains.Gp=10:20"]
    words += ["--points", "2", "--set", "payload.mass=0.1", *options, "--no-foreshortening"]
    found = json.loads(flexctl(*words, "--json").out)

    assert found["provenance"]["files"] == {"soft.toml": MODEL}
    assert found["truth"]["settings"] == [
        "--truth-model=soft.toml",
        "links.foreshortening=false",
        "links.damping_ratio=0.05",
        "payload.mass=0.3",
    ]


def test_a_sweep_keeps_its_table_and_the_matrices_of_its_designs(tmp_path, flexctl):
    (tmp_path / "masses.csv").write_text("payload.mass\n0.1\n0.2\n")
    np.savez(tmp_path / "pd.npz", D=[[20.0, 6.0]])
    (tmp_path / "own.toml").write_text(OWN_LAW)
    words = ["sweep", "single-link-hub", tmp_path / "own.toml", "--metrics", "linear"]
    words += ["--truth-vary", tmp_path / "masses.csv", "--jobs", "1", "--truth-modes", "1"]
    made = json.loads(flexctl(*words, "--json").out)["provenance"]

    assert made["files"] == {"masses.csv": "payload.mass\n0.1\n0.2\n"}
    assert made["gains"]["own"]["D"] == [[20.0, 6.0]]
    settings = {"--truth-modes=1", "--truth-vary=masses.csv", "--metrics=linear"}
    assert set(made["settings"]) == settings  # without --jobs


def test_files_of_one_name_in_several_folders_are_all_kept(tmp_path, flexctl):
    words, texts = [], {}
    for folder, key in (("a", "payload.mass"), ("b", "link1.length"), ("c", "links.damping_ratio")):
        (tmp_path / folder).mkdir()
        own = texts[folder] = f"{key}\n0.1\n"
        (tmp_path / folder / "same.csv").write_text(own)
        words += ["--truth-vary", tmp_path / folder / "same.csv"]
    words = ["sweep", "single-link-hub", "hub-pd", "--metrics", "linear", *words, "--json"]
    made = json.loads(flexctl(*words, "--jobs", "1", "--truth-modes", "1").out)["provenance"]
    assert made["files"] == {
        "same.csv": texts["a"],
        "same-2.csv": texts["b"],
        "same-3.csv": texts["c"],
    }
