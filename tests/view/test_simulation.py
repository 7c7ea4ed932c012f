"""`flexctl simulate`: samples at the times asked, files that give back what was run."""

import csv
import json

import numpy as np
import pytest
import xarray as xr
from PIL import Image

from flexctl.simulation import simulate as simulate_loop
from flexctl.view.json.loop import trajectory_json
from tests.arms import rigid_link
from tests.designs import make_design
from tests.loops import close

QUICK = ("single-link-hub", "hub-pd", "-m", "1", "--truth-modes", "1")


@pytest.fixture
def simulate(flexctl):
    def call(*words):
        said = flexctl("simulate", *QUICK, "--json", *words)
        assert (said.status, said.err) == (0, "")
        return json.loads(said.out)

    return call


def test_the_answer_has_the_keys_of_the_contract(simulate):
    found = simulate()

    assert {"model", "design", "truth", "duration", "samples", "energy", "steps"} <= set(found)
    assert {"wall_seconds", "saturated_seconds", "integrator", "assumptions"} <= set(found)
    assert set(found["energy"]) >= {"kinetic", "strain", "potential", "supplied", "dissipated"}
    assert set(found["samples"][0]) == {
        "t",
        "joint",
        "joint_rate",
        "rotor",
        "link_tip",
        "tip",
        "tip_error",
        "tau",
        "torque",
    }
    assert found["truth"]["kind"] == "modes"
    assert found["truth"]["order"] == 1


def test_eleven_samples_unless_told(simulate):
    found = simulate()

    assert [sample["t"] for sample in found["samples"]] == pytest.approx(np.linspace(0, 4, 11))


def test_samples_are_taken_at_the_times_asked_in_their_order(simulate):
    found = simulate("--at", "1.2345678", "--at", "0.1")

    assert [sample["t"] for sample in found["samples"]] == [1.2345678, 0.1]


def test_a_sample_does_not_depend_on_the_others(simulate):
    alone = simulate("--at", "0.7")["samples"][0]
    among = simulate("--at", "0.3,0.7,0.9")["samples"][1]

    assert among["joint"] == pytest.approx(alone["joint"], abs=1e-7)


def test_the_energy_account_closes(simulate):
    energy = simulate()["energy"]
    gained = energy["kinetic"] + energy["strain"] + energy["potential"]

    assert gained == pytest.approx(
        energy["supplied"] - energy["dissipated"], abs=1.01 * energy["residual"]
    )
    assert energy["residual_relative"] < 1e-4


def test_the_duration_can_be_set(simulate):
    assert simulate("--duration", "1.5")["duration"] == 1.5


def test_the_truth_arm_may_differ(simulate):
    stiff, soft = simulate(), simulate("--truth-set", "link1.EI=*0.5")

    assert soft["truth"]["settings"] == ["link1.EI=*0.5"]
    bent = [abs(run["samples"][1]["link_tip"]["link1"]["y"]) for run in (stiff, soft)]
    assert bent[1] > 1.1 * bent[0]


def test_a_netcdf_file_gives_back_all_signals(simulate, tmp_path):
    found = simulate("--out", tmp_path / "run.nc", "--at", "0.5")
    with xr.open_dataset(tmp_path / "run.nc", engine="h5netcdf") as data:
        at = data.sel(t=0.5)
        sample = found["samples"][0]

        assert at.tip_error.item() == sample["tip_error"]
        assert at.q.sel(coordinate="joint1").item() == sample["joint"][0]
        assert at.deflection.sel(line="link1.y").item() == sample["link_tip"]["link1"]["y"]
        assert data.t.attrs["units"] == "s"
        assert data.joint_unit.values.tolist() == ["rad"]
        assert "collocated" in data.attrs["assumptions"]


def test_a_csv_file_gives_back_all_signals(simulate, tmp_path):
    found = simulate("--out", tmp_path / "run.csv", "--at", "0.5")
    with (tmp_path / "run.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    (row,) = [row for row in rows if row["t"] == "0.5"]

    assert float(row["joint1"]) == found["samples"][0]["joint"][0]
    assert float(row["joint1.torque"]) == found["samples"][0]["tau"][0]
    assert float(row["link1.y.1"]) != 0


@pytest.mark.slow  # takes long
def test_a_film_has_as_many_frames_as_it_should(flexctl, tmp_path, monkeypatch):
    monkeypatch.setattr("flexctl.view.figures.animation.N_FRAMES", 8)
    assert flexctl("simulate", *QUICK, "--animate", tmp_path / "run.gif").status == 0
    with Image.open(tmp_path / "run.gif") as film:
        assert film.n_frames == 8


def test_an_mp4_without_ffmpeg_is_refused_before_anything_runs(flexctl, monkeypatch, tmp_path):
    monkeypatch.setattr("shutil.which", lambda _name: None)
    said = flexctl("simulate", *QUICK, "--animate", tmp_path / "run.mp4")

    assert said.status == 2
    assert "ffmpeg" in said.err


def test_a_run_is_told_although_its_film_cannot_be_written(flexctl, monkeypatch, tmp_path):
    def refuse(*_words):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("flexctl.view.figures.animation.write_animation", refuse)
    said = flexctl("simulate", *QUICK, "--animate", tmp_path / "run.gif", "--json")

    assert said.status == 2
    assert json.loads(said.out)["steps"] > 0
    assert said.err == f"flexctl: {tmp_path}/run.gif: cannot be written: No space left on device\n"


def test_a_person_reads_a_table(flexctl):
    said = flexctl("simulate", *QUICK)

    assert "tip error from" in said.out
    assert "rigid arm [mm]" in said.out
    assert "account off by" in said.out


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("explicit", ()),
        ("esdirk", ()),
        ("adams", ("--duration", "0.3")),
        ("bdf", ("--duration", "0.3")),
        ("midpoint", ("--step", "1e-3")),
        ("rk4", ("--step", "1e-4")),
    ],
)
def test_the_integrator_can_be_named_and_is_said(simulate, name, words):
    found = simulate("--integrator", name, *words, "--at", "0.25")
    alone = simulate("--at", "0.25")

    assert found["steps"] > 0
    assert found["evaluations"] >= found["steps"]
    assert found["samples"][0]["joint"] == pytest.approx(alone["samples"][0]["joint"], abs=1e-5)
    assert found["integrator"] != alone["integrator"] or name == "explicit"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--integrator", "rk45"), "integrator"),
        (("--integrator", "rk4"), "step"),
        (("--integrator", "rk4", "--step", "0.5"), "unstable"),
        (("--integrator", "esdirk", "--step", "1e-3"), "step"),
        (("--integrator", "midpoint", "--step", "1e-3", "--tolerance", "1e-6"), "tolerance"),
        (("--tolerance", "-1"), "tolerance"),
    ],
)
def test_an_integrator_that_cannot_be_is_refused_in_one_line(flexctl, words, said):
    found = flexctl("simulate", *QUICK, *words)

    assert found.status == 2
    assert said in found.err
    assert found.err.count("\n") == 1


TURN_THE_TAPERED_LINK = """
summary = "A turn of the tapered link under joint PD"
source = "own"
model = "tapered-link"
method = "joint-pd"
reference = { kind = "quintic", from = [0.0], to = [1.0], duration = 0.5 }
gains = { Gp = 40.0, Gv = 4.0 }
loop = { duration = 0.7 }
"""


@pytest.mark.slow_but("*3e4*")
@pytest.mark.parametrize("words", [(), ("--set", "link1.shear_stiffness.y=3e4")], ids=str)
def test_a_link_that_is_not_uniform_keeps_its_account_of_energy(flexctl, tmp_path, words):
    design = tmp_path / "turn.toml"
    design.write_text(TURN_THE_TAPERED_LINK)
    said = flexctl("simulate", "tapered-link", str(design), "--truth-modes", "2", "--json", *words)
    assert (said.status, said.err) == (0, "")
    energy = json.loads(said.out)["energy"]

    found = energy["kinetic"] + energy["strain"] + energy["potential"] + energy["dissipated"]
    assert energy["supplied"] == pytest.approx(found, abs=1e-6 * energy["dissipated"])


def test_samples_that_are_events_but_for_round_off_are_theirs():
    # 0.6 of the eleven times is no multiple of the computer's 1 ms, but for round-off
    loop = {"sample_time": 1e-3, "duration": 1.0}
    design = make_design([0.0], [0.3], "joint-pd", gains={"Gp": 8.0, "Gv": 1.0}, loop=loop)
    loop = close(rigid_link(), design, order=1)
    for asked in (np.linspace(0, 1, 11), np.array([0.30000000000000004, 0.7])):
        run = simulate_loop(loop, times=np.union1d(np.linspace(0, 1, 1001), asked))
        found = [one["t"] for one in trajectory_json(run, asked)["samples"]]
        np.testing.assert_allclose(found, asked, atol=1e-9)
