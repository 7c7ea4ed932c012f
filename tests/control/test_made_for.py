"""A design says for which arm it was made, however its file names the arm."""

import shutil

import pytest

from flexctl.control import design_controller
from flexctl.model.lookup import find, load_design, load_model
from flexctl.model.record import BasisChoice

BASIS = BasisChoice(order=1)


@pytest.fixture
def files(tmp_path):
    """An arm and a design of the catalogue as files of a user, in two folders."""
    arm, design = tmp_path / "arms" / "mine.toml", tmp_path / "gains" / "pd.toml"
    for source, target in (
        (find("models", "single-link-hub"), arm),
        (find("designs", "hub-pd"), design),
    ):
        target.parent.mkdir()
        shutil.copy(source, target)
    return arm, design


def remarks(arm, design, model):
    """Return what a design that names `model` says on an arm of having been made for another."""
    text = design.read_text().replace('model = "single-link-hub"', f"model = {model!r}")
    design.write_text(text)
    made = design_controller(load_model(arm), load_design(design), BASIS, interpreted=True)
    return [sentence for sentence in made.assumptions if "was made for" in sentence]


@pytest.mark.parametrize("model", ["mine", "mine.toml", "../arms/mine.toml", "arms/mine.toml"])
def test_the_own_arm_is_known_by_name_and_by_path(model, files):
    assert remarks(*files, model) == []


def test_the_own_arm_is_known_by_its_whole_path(files):
    assert remarks(*files, str(files[0])) == []


@pytest.mark.parametrize("model", ["single-link-hub", "other.toml", "mine.csv"])
def test_another_arm_is_told(model, files):
    assert remarks(*files, model) == [f"pd was made for {model}, not for mine"]


def test_a_file_of_the_same_name_in_another_folder_is_another_arm(files):
    arm, design = files
    other = arm.parent / "old" / "mine.toml"
    other.parent.mkdir()
    shutil.copy(arm, other)

    assert len(remarks(arm, design, "../arms/old/mine.toml")) == 1
