"""Arms with flexible joints as a person sees them: rotors, springs, wind-up."""

import csv
import itertools
import json

import numpy as np
import pytest
import xarray as xr

from flexctl.control import design_controller
from flexctl.loop.closed_loop import close_around
from flexctl.model.link import FlexibleJoint
from flexctl.model.lookup import load_design, load_model
from flexctl.model.record import BasisChoice
from flexctl.plant.plant import assemble_plant
from flexctl.simulation.simulation import simulate
from flexctl.verdict.comparison import compare
from flexctl.view.figures.curves import Curve, plot_wind_up
from flexctl.view.figures.drawing import make_skeleton
from flexctl.view.figures.style import looks, new_figure, styled
from flexctl.view.save import save
from flexctl.view.signals import coordinate_units, wind_up

ONE = BasisChoice(order=1)


@pytest.fixture
def inspect(flexctl, sprung):
    def call(model, *words):
        said = flexctl("inspect", sprung.get(model, model), "--json", *words)
        assert (said.status, said.err) == (0, "")
        return json.loads(said.out)

    return call


# Rod 0.3 kg m^2 and rotor 2^2 * 0.05 = 0.2 kg m^2 at the ends of a spring of 60 N m/rad.
@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("frequencies_locked", []),
        ("frequencies_free", [np.sqrt(60 / 0.3)]),
        ("frequencies_rotor_free", [np.sqrt(60 / 0.3 + 60 / 0.2)]),
    ],
)
def test_frequencies_are_those_of_two_inertias_and_a_spring(inspect, key, expected):
    assert inspect("rod-on-spring")[key] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    ("key", "left_out"),
    # 2 joints, 1 rotor, 2 modes: only joint 1 is free to turn while the rotor is held
    [("frequencies_locked", 3), ("frequencies_free", 2), ("frequencies_rotor_free", 2)],
)
def test_as_many_zeros_are_left_out_as_there_are_rigid_motions(inspect, key, left_out):
    found = inspect("one-spring", "-m", "1")

    assert len(found["coordinates"]) - left_out == len(found[key])
    assert min(found[key]) > 1.0


def test_holding_a_part_of_the_arm_never_interlaces_wrongly(inspect):
    # Rayleigh: each coordinate more that is free puts one more frequency, none above the old one
    found = inspect("one-spring", "-m", "1")
    free = np.array([0.0, *found["frequencies_free"]])
    all_free = np.array([0.0, 0.0, *found["frequencies_rotor_free"]])

    assert (all_free[:-1] <= free).all()
    assert (free <= all_free[1:]).all()


def test_the_rigid_inertia_moves_rotors_with_their_joints(inspect):
    assert inspect("rod-on-spring")["rigid_inertia"][0][0] == pytest.approx(0.3 + 0.2, rel=1e-12)


def test_the_springs_are_listed(inspect):
    found = inspect("rod-on-spring")["flexible_joints"]

    assert found["joint1"]["inertia"] == pytest.approx(0.2)
    assert found["joint1"]["stiffness"] == 60


def test_a_pose_of_the_joints_takes_the_rotors_along(inspect):
    pose = inspect("one-spring", "--pose", "joint2=0.4")["pose"]

    assert pose == {"joint1": 0.0, "joint2": 0.4, "rotor2": 0.4}


@pytest.mark.parametrize("model", ["single-link-hub", "theodore-ghosal-rrp"])
@pytest.mark.parametrize("key", ["frequencies_rotor_free", "flexible_joints"])
def test_an_arm_without_rotors_has_no_key_of_theirs(inspect, model, key):
    assert key not in inspect(model)


def test_a_person_reads_of_springs_and_rotors(flexctl, sprung):
    said = flexctl("inspect", sprung["one-spring"])

    assert "arm, joints free, rotors held" in said.out
    assert "Flexible joints" in said.out


@pytest.mark.parametrize("model", ["rod-on-spring", "one-spring"])
def test_the_arm_is_drawn_with_the_modes_of_held_rotors(flexctl, sprung, tmp_path, model):
    path = tmp_path / "arm.svg"

    assert flexctl("inspect", sprung[model], "--plot", path).status == 0
    assert path.stat().st_size > 8000


def test_the_drawn_arm_follows_its_joints_and_not_its_rotors(sprung):
    plant = assemble_plant(load_model(str(sprung["one-spring"])), ONE, interpreted=True)
    q = plant.pose() + np.random.default_rng(1).normal(scale=0.03, size=plant.n)
    lines = make_skeleton(plant).lines(q)

    assert lines[-1][:, -1] == pytest.approx(plant.tip(q), abs=1e-12)
    for before, after in itertools.pairwise(lines):
        assert after[:, 0] == pytest.approx(before[:, -1], abs=1e-12)


def test_exaggeration_leaves_the_rotors_alone(sprung):
    plant = assemble_plant(load_model(str(sprung["one-spring"])), ONE, interpreted=True)
    skeleton, q = make_skeleton(plant), plant.pose({"joint1": 0.2, "joint2": 0.4})

    assert skeleton.lines(q, 50.0)[-1] == pytest.approx(skeleton.lines(q)[-1], abs=1e-15)


@pytest.fixture(scope="module")
def run(sprung):
    arm, design = load_model(str(sprung["one-spring"])), load_design(str(sprung["slow-pd"]))
    controller = design_controller(arm, design)
    return simulate(close_around(controller, controller.plant))


@pytest.mark.slow
def test_the_spring_carries_what_the_rotor_passes_on(run):
    # J alpha'' = tau - k (alpha - theta) - d (alpha' - theta') [SM02] (43), of joint 2 alone
    rate = run.v[2] - run.v[1]
    passed_on = run.tau[1] - 0.02 * run.a[2]

    assert 100 * wind_up(run)["joint2"] + 0.1 * rate == pytest.approx(passed_on, abs=1e-7)
    assert np.abs(passed_on).max() > 0.1


def test_only_flexible_joints_wind_up(run):
    assert list(wind_up(run)) == ["joint2"]


@pytest.fixture
def simulated(flexctl, sprung):
    def call(*words):
        quick = ("-m", "1", "--truth-modes", "1", "--at", "0.3")
        said = flexctl("simulate", sprung["one-spring"], sprung["slow-pd"], *quick, *words)
        assert (said.status, said.err) == (0, "")
        return said.out

    return call


def test_samples_name_the_rotors(simulated):
    (sample,) = json.loads(simulated("--json"))["samples"]

    assert len(sample["rotor"]) == 1
    assert 1e-5 < abs(sample["rotor"][0] - sample["joint"][1]) < 0.1


def test_the_table_shows_the_wind_up(simulated):
    assert "wind-up" in simulated()


def test_a_netcdf_file_holds_rotors_and_wind_up_with_their_units(simulated, tmp_path):
    (sample,) = json.loads(simulated("--json", "--out", tmp_path / "run.nc"))["samples"]
    with xr.open_dataset(tmp_path / "run.nc", engine="h5netcdf") as data:
        at = data.sel(t=0.3)

        assert at.q.sel(coordinate="rotor2").item() == sample["rotor"][0]
        assert at.coordinate_unit.sel(coordinate="rotor2").item() == "rad"
        wound = at.wind_up.sel(flexible_joint="joint2").item()
        assert wound == pytest.approx(sample["rotor"][0] - sample["joint"][1], abs=1e-15)


def test_a_csv_file_holds_rotors_and_wind_up(simulated, tmp_path):
    (sample,) = json.loads(simulated("--json", "--out", tmp_path / "run.csv"))["samples"]
    with (tmp_path / "run.csv").open(newline="") as file:
        (row,) = [row for row in csv.DictReader(file) if row["t"] == "0.3"]

    assert float(row["rotor2"]) == sample["rotor"][0]
    assert float(row["joint2.wind_up"]) == sample["rotor"][0] - sample["joint"][1]
    assert float(row["rotor2.rate"]) != float(row["joint2.rate"])


def test_the_rotor_of_a_sliding_joint_counts_in_metres():
    arm = load_model("theodore-ghosal-rrp")
    spring = FlexibleJoint(rotor_inertia=1.0, stiffness=1e4)
    links = [link.model_copy(update={"flexible_joint": spring}) for link in arm.links]
    sprung = arm.model_copy(update={"links": tuple(links)})

    assert coordinate_units(sprung, ("rotor2", "rotor3")) == ("rad", "m")


def test_one_panel_shows_what_every_spring_is_wound_up_by(run, sprung):
    arm = load_model(str(sprung["one-spring"]))
    curve = Curve(name="pd", run=run, look=looks(["pd"])["pd"], band=1e-4)
    with styled():
        figure = new_figure(5, 3)
        plot_wind_up(figure, [curve], arm)
    (axes,) = figure.axes

    assert "joint2" in axes.get_title(loc="left")
    assert axes.lines[-2].get_ydata() == pytest.approx(1e3 * (run.q[2] - run.q[1]))


@pytest.mark.slow  # takes long
def test_the_figure_of_a_run_and_its_film_are_drawn(simulated, tmp_path, monkeypatch):
    monkeypatch.setattr("flexctl.view.figures.animation.N_FRAMES", 2)
    simulated("--plot", tmp_path / "run.svg", "--animate", tmp_path / "run.gif")

    assert "wind-up" in (tmp_path / "run.svg").read_text()
    assert (tmp_path / "run.gif").stat().st_size > 8000


@pytest.mark.slow  # compiles long
def test_the_report_of_a_comparison_shows_the_wind_up(sprung, tmp_path):
    arm, design = load_model(str(sprung["one-spring"])), load_design(str(sprung["slow-pd"]))
    found = compare(arm, [design], truth_basis=ONE, design_basis=ONE, baseline=False)

    save(found, tmp_path / "report.html")

    assert "Wind-up of the joints" in (tmp_path / "report.html").read_text("utf-8")
