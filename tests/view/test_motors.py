"""Motors as people meet them: units of commands in tables, files, figures and sentences."""

import csv
import json

import pytest
import xarray as xr

from flexctl.model.lookup import load_model
from flexctl.search.sweeps import _units_on

ARM = """\
summary = "A flexible link on a voltage-driven gear, a rigid one on a current-driven one"
source = "flexctl"
gravity = [0.0, -9.81, 0.0]

[[link]]
joint = "revolute"
length = 0.5
mass_per_length = 0.3
EI = { y = 60.0 }
damping_ratio = 0.01
joint_inertia = 0.05
motor = { VOLTS, gear = 100.0, CURRENT }

[[link]]
joint = "revolute"
dh = { a = 0.4 }
mass_per_length = 0.3
joint_inertia = 0.02
motor = { command = "current", torque_constant = 0.05, gear = 60.0 }
limits = { torque = 9.0 }

[payload]
mass = 0.4
"""

DESIGN = """\
summary = "Volts and amperes per radian"
source = "flexctl"
model = "driven"
method = "joint-pd"

[basis]
kind = "modes"
order = 1

[reference]
kind = "quintic"
from = [-0.6, 0.2]
to = [0.2, 0.6]
duration = 0.6

[gains]
Gp = [90.0, 40.0]
Gv = [4.0, 5.0]

[loop]
duration = 1.2
settle_within = 2e-3
"""


VOLTS = 'command = "voltage", resistance = 2.6, torque_constant = 0.077, back_emf = 0.077'


@pytest.fixture
def files(tmp_path):
    """files(**more): arm and design, and what else the first motor has."""

    def made(current="current_limit = 20.0"):
        (tmp_path / "driven.toml").write_text(
            ARM.replace("VOLTS", VOLTS).replace("CURRENT", current)
        )
        (tmp_path / "pd.toml").write_text(DESIGN)
        return tmp_path / "driven.toml", tmp_path / "pd.toml", "--truth-modes", "1"

    return made


@pytest.mark.slow
def test_a_run_has_commands_and_torques(flexctl, files, tmp_path):
    said = flexctl("simulate", *files(), "--json", "--at", "0.1,0.3", "--out", tmp_path / "run.csv")
    answer = json.loads(said.out)
    rates = [sample["joint_rate"] for sample in answer["samples"]]

    assert said.status == 0
    for sample, rate in zip(answer["samples"], rates, strict=True):
        volts, amperes = sample["tau"]
        own = 100 * 0.077 * (volts - 0.077 * 100 * rate[0]) / 2.6
        assert sample["torque"] == pytest.approx([own, 60 * 0.05 * amperes], rel=1e-9)
    with (tmp_path / "run.csv").open(newline="") as file:
        row = next(row for row in csv.DictReader(file) if float(row["t"]) == 0.1)
    found = [float(row[f"joint{j}.{what}"]) for what in ("command", "torque") for j in (1, 2)]
    assert found == answer["samples"][0]["tau"] + answer["samples"][0]["torque"]


@pytest.mark.slow
def test_a_table_has_the_units_of_the_commands(flexctl, files):
    said = flexctl("simulate", *files("current_limit = 1.0"), "--at", "0.1")

    assert "[V]" in said.out
    assert "[A]" in said.out
    assert "joint1 is at its voltage or current limit for" in said.out
    assert "torque limit" not in said.out


@pytest.mark.slow
def test_netcdf_names_the_units_of_both(flexctl, files, tmp_path):
    flexctl("simulate", *files(), "--out", tmp_path / "run.nc")
    with xr.open_dataset(tmp_path / "run.nc", engine="h5netcdf") as data:
        assert data.command_unit.values.tolist() == ["V", "A"]
        assert data.torque_unit.values.tolist() == ["N m", "N m"]
        assert data.tau.attrs["units"] == "command_unit"
        assert data.torque.attrs["units"] == "torque_unit"
        # the shaft's energy account: supplied is the work of `torque`
        power = (data.torque * data.v.isel(coordinate=[0, 1]).values).sum("joint")
        assert float(power.integrate("t")) == pytest.approx(
            float(data.supplied_energy[-1]), rel=1e-3
        )


@pytest.mark.slow
def test_a_verdict_names_units_and_limits(flexctl, files):
    arm, design, *more = files("current_limit = 1.0")
    said = flexctl("compare", arm, design, *more, "--no-baseline", "--json")
    answer = json.loads(said.out)["evaluations"][0]

    assert answer["effort"]["units"] == ["V", "A"]
    assert answer["effort"]["saturated_seconds"][0] > 0
    # torques at rest: gravity moments of the arm; 60 k_t i at most 9, 100 k_t 1 A = 7.7 N m
    assert answer["rest"]["limit"] == pytest.approx([7.7, 9.0])
    assert any("reaches the actuator limit of joint1" in words for words in answer["assumptions"])
    table = flexctl("compare", arm, design, *more, "--no-baseline").out
    assert "peak commands" in table
    assert "V, A" in table


def test_a_sweep_has_the_units_of_the_commands(files):
    arm, *_ = files()
    units = _units_on(load_model(arm))

    assert units["effort.peak"] == "V or A"
    assert units["tracking.joint_error_max"] == "rad"


def test_holding_torques_are_torques_whatever_is_commanded(flexctl, files, tmp_path):
    arm, *_ = files()
    bare = tmp_path / "bare.toml"
    text = [line for line in arm.read_text().splitlines() if not line.startswith("motor")]
    bare.write_text("\n".join(text))
    rests = [
        json.loads(flexctl("inspect", path, "-m", "1", "--json").out)["at_rest"]
        for path in (arm, bare)
    ]

    assert rests[0]["holding_torque"] == pytest.approx(rests[1]["holding_torque"], rel=1e-12)


def test_friction_of_a_rigid_joint_acts_behind_the_gear_of_its_motor(flexctl, files):
    arm, *_ = files()
    limited = "limits = { torque = 9.0 }"
    arm.write_text(arm.read_text().replace(limited, "friction = { coulomb = 0.02 }"))
    found = json.loads(flexctl("inspect", arm, "-m", "1", "--json").out)["friction"]

    assert {joint: own["side"] for joint, own in found.items()} == {"joint2": "link"}


def test_an_inspection_says_what_the_motors_do(flexctl, files):
    arm, *_ = files("voltage_limit = 24.0")
    found = json.loads(flexctl("inspect", arm, "-m", "1", "--json").out)["motors"]

    per_volt = 100 * 0.077 / 2.6
    assert found["joint1"]["torque_per_command"] == pytest.approx(per_volt)
    assert found["joint1"]["damping"] == pytest.approx(per_volt * 100 * 0.077)
    assert found["joint1"]["limit"] == pytest.approx(24 * per_volt)
    assert found["joint2"] | {"unit": "A", "limit": 9.0, "damping": 0.0} == found["joint2"]
    text = flexctl("inspect", arm, "-m", "1").out
    assert "voltage [V]" in text
    assert "damper of back-EMF" in text


def test_a_design_whose_motors_are_too_weak_says_so_in_torques(flexctl, files):
    arm, design, *more = files("current_limit = 0.2")
    said = flexctl("compare", arm, design, *more, "--no-baseline", "--json")
    failed = json.loads(said.out)["evaluations"][0]["failed"]

    assert "the actuators cannot hold the arm" in failed
    assert "its limit is 1.54 N m" in failed


def test_the_figure_names_what_is_commanded(flexctl, files, tmp_path):
    assert flexctl("simulate", *files(), "--plot", tmp_path / "run.svg").status == 0
    assert (tmp_path / "run.svg").stat().st_size > 10_000


@pytest.mark.slow
def test_constants_of_a_motor_are_swept(flexctl, files):
    arm, design, *more = files("voltage_limit = 48.0")
    words = ["--vary", "link1.motor.back_emf=0.05,0.1", "--metrics", "linear", "--json"]
    said = flexctl("sweep", arm, design, *more, *words)

    assert said.status == 0, said.err
    answer = json.loads(said.out)
    assert len(answer["points"]) == 2


def test_a_gear_that_is_said_twice_is_refused_in_one_line(flexctl, files):
    arm, design, *_ = files()
    spring = "flexible_joint = { rotor_inertia = 1e-4, stiffness = 900.0, gear = 100.0 }\nmotor"
    arm.write_text(arm.read_text().replace("motor", spring, 1))
    said = flexctl("simulate", arm, design)

    assert said.status == 2
    assert (
        "link[1].motor.gear: expected no such key, as flexible_joint has the gear, got" in said.err
    )
    assert len(said.err.strip().splitlines()) == 1
