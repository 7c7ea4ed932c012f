import math
import os
import shutil
import tomllib

import pytest

from flexctl.errors import InputError
from flexctl.model import lookup
from flexctl.model.arm import Arm
from flexctl.model.compatibility import check_design
from flexctl.model.design import Design
from flexctl.model.design_writing import design_text as design_text_of
from flexctl.model.files import read_bytes, replacing_file
from flexctl.model.lookup import folders, list_designs, list_models, load_design, load_model

MODELS = [entry.name for entry in list_models()]
DESIGNS = [entry.name for entry in list_designs()]


def test_the_catalogue_holds_what_it_promises():
    models = {"planar-two-link", "single-link-hub", "theodore-ghosal-rrp", "mohan-saha-canadarm"}
    models |= {"mohan-saha-canadarm-spatial", "kane-spin-up", "wu-haug-spin-up"}
    models |= {"subudhi-morris-2r", "subudhi-morris-2r-rigid-joints", "de-luca-siciliano-2r"}
    models |= {"romano-flexible-joint-link", "theodore-ghosal-rr", "theodore-ghosal-rrr"}
    models |= {"theodore-ghosal-rp"}
    assert models <= set(MODELS)
    promised = {"hub-pd", "rrp-gentle", "rrp-stiff", "rrp-stiff-decoupling", "two-link-decoupling"}
    promised |= {"mohan-saha-forced", "kane-spin-up", "wu-haug-2", "wu-haug-4"}
    promised |= {"subudhi-morris-bang-bang"}
    assert promised <= set(DESIGNS)


@pytest.mark.parametrize("name", MODELS)
def test_every_model_loads_and_survives_a_round_trip(name):
    arm = load_model(name)

    assert arm.name == name
    assert Arm.model_validate({**arm.table(), "name": arm.name, "path": arm.path}) == arm


@pytest.mark.parametrize("name", DESIGNS)
def test_every_design_loads_fits_its_model_and_survives_a_round_trip(name):
    design = load_design(name)

    check_design(load_model(design.model), design)
    again = {**design.table(), "name": design.name, "path": design.path}
    assert Design.model_validate(again) == design


@pytest.mark.parametrize("entry", [*list_models(), *list_designs()], ids=lambda entry: entry.name)
def test_every_entry_of_the_list_is_whole(entry):
    assert entry.error is None
    assert entry.summary
    assert entry.source
    assert (entry.model is None) == (entry.path.parent.name == "models")


def test_the_full_contract_is_accepted(model_text, design_text, write):
    arm = load_model(write(model_text))
    design = load_design(write(design_text))

    assert [link.name for link in arm.links] == ["link1", "upper", "link3"]
    assert arm.joints == ("joint1", "joint2", "joint3")
    assert arm.expect["link_frequencies.upper.y"].key == "link_frequencies.upper.y"
    assert design.gains.Gp == (100.0,)
    assert design.second_loop.switch.blend == 0.05
    assert load_model(write(model_text.replace("\n", "\r\n"))).links == arm.links


def test_defaults_follow_from_what_is_written(write):
    link = 'joint = "revolute"\nlength = 0.7\nmass_per_length = 1\nEI = { y = 2 }\n'
    rigid = '[[link]]\njoint = "revolute"\ndh = { a = -0.4 }\n'
    head = 'summary = "s"\nsource = "s"\ngravity = [0, 0, 0]\n'
    arm = load_model(write(head + "[[link]]\n" + link + rigid))

    assert arm.links[0].dh.a == 0.7
    assert arm.links[0].damping_ratio == (0.0,)
    assert arm.links[0].foreshortening
    assert arm.links[1].length == 0.4
    assert arm.links[1].limits.position is None
    assert arm.payload.mass == 0
    assert arm.truth is None


def test_the_hub_shorthand_of_planar_arms_is_allowed():
    assert load_model("single-link-hub").links[0].hub.inertia == (0, 0, 0.1)


def test_records_cannot_be_changed():
    arm = load_model("single-link-hub")

    with pytest.raises(ValueError, match="frozen"):
        arm.gravity = (0, 0, 0)


def test_single_link_data_follow_from_its_section():
    link = load_model("single-link-hub").links[0]
    width, height = 0.05, 0.004

    assert link.EI["y"] == pytest.approx(6.9e10 * width * height**3 / 12, rel=1e-12)
    assert link.mass_per_length == pytest.approx(2700 * width * height, rel=1e-12)


@pytest.mark.parametrize(("link", "hertz"), [("link1", [0.48, 1.80]), ("link2", [2.18, 15.91])])
def test_planar_arm_expects_the_published_hertz(link, hertz):
    found = load_model("planar-two-link").expect[f"link_frequencies.{link}.y"].value

    assert found == pytest.approx([2 * math.pi * f for f in hertz], rel=1e-7)


def test_masses_of_the_rrp_arm_are_those_of_the_paper():
    links = load_model("theodore-ghosal-rrp").links

    found = [link.mass_per_length * link.length for link in links]
    assert found == pytest.approx([3.7051, 0.331, 0.4303], rel=1e-12)


def test_a_broken_file_does_not_break_the_list(tmp_path, monkeypatch):
    shutil.copytree(folders("models")[-1], tmp_path / "models")
    (tmp_path / "models" / "broken.toml").write_text("summary = 3")
    monkeypatch.setattr(lookup, "_PACKAGE", tmp_path)

    entries = {entry.name: entry for entry in list_models()}

    assert set(entries) == {*MODELS, "broken"}
    assert "summary: expected a text in quotes, got 3" in entries["broken"].error
    assert entries["single-link-hub"].error is None


def test_the_package_comes_before_the_checkout(tmp_path, monkeypatch):
    package = tmp_path / "flexctl"
    for place in (package, tmp_path):
        shutil.copytree(folders("models")[-1], place / "models")
    monkeypatch.setattr(lookup, "_PACKAGE", package)

    (tmp_path / "pyproject.toml").touch()
    assert folders("models") == (package / "models", tmp_path / "models")
    assert load_model("single-link-hub").path.parent == package / "models"
    (tmp_path / "pyproject.toml").unlink()  # a site folder: its models are somebody else's
    assert folders("models") == (package / "models",)


def test_the_working_folder_is_never_searched_by_name(tmp_path, monkeypatch, model_text):
    (tmp_path / "mine.toml").write_text(model_text)
    (tmp_path / "single-link-hub.toml").write_text(model_text)
    monkeypatch.chdir(tmp_path)

    assert load_model("mine.toml").name == "mine"
    assert load_model("./mine.toml").name == "mine"
    assert load_model("single-link-hub").path.parent != tmp_path
    with pytest.raises(InputError, match="got 'mine'"):
        load_model("mine")


@pytest.mark.parametrize("suffix", [".toml", ".csv"])
def test_a_name_that_no_file_can_have_is_refused_as_one_that_cannot_be_read(suffix, tmp_path):
    with pytest.raises(InputError, match="expected a file to read, got: File name too long"):
        read_bytes(tmp_path / f"{'a' * 300}{suffix}")


def test_a_file_whose_name_is_as_long_as_can_be_is_written(tmp_path):
    path = tmp_path / f"{'a' * 250}.toml"
    with replacing_file(path) as draft:
        draft.write_text("text")

    assert path.read_text() == "text"


@pytest.mark.parametrize(("read", "written"), [("link", "out"), ("out", "link")])
def test_paths_of_a_design_lead_to_its_files_through_links_to_folders(
    read, written, tmp_path, design_text
):
    """``..`` leads out of the folder that a link points to, not out of the link's own."""
    for folder in ("far/deep", "out"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "far" / "deep")
    begin, end = design_text.index("[reference]"), design_text.index("[gains]")
    motion = '[reference]\nkind = "csv"\nfile = "motion.csv"\n'
    text = (design_text[:begin] + motion + design_text[end:]).replace(
        'model = "theodore-ghosal-rrp"', 'model = "../arm.toml"'
    )
    (tmp_path / read / "own.toml").write_text(text)
    samples = "t,joint1,joint2,joint3\n0,0,0,0.3\n1,1,1,1\n"
    (tmp_path / read / "motion.csv").write_text(samples)
    (tmp_path / read / ".." / "arm.toml").touch()
    design = load_design(tmp_path / read / "own.toml")
    table = tomllib.loads(design_text_of(design, tmp_path / written))
    there = tmp_path / written / table["reference"]["file"]

    assert there.read_text() == samples
    assert os.path.samefile(tmp_path / written / table["model"], tmp_path / read / "../arm.toml")
