"""The table [tune] of design files, and designs written as files."""

import tomllib

import numpy as np
import pytest

from flexctl.errors import InputError
from flexctl.model import build_file, design_text, list_designs, load_design
from flexctl.model.design import Design
from flexctl.model.design_writing import toml_text

HUB = load_design("hub-pd")


def with_tune(tune):
    return build_file(Design, {**HUB.table(), "tune": tune}, "own", None)


def test_bounds_limits_and_variations_are_read():
    tune = with_tune(
        {
            "free": {"gains.Gp": [10, 2000], "gains.Gv": "*0.5:*2"},
            "minimise": "residual.settling_time",
            "subject_to": ["margins.gain_db>=6"],
            "over": {"payload.mass": "uniform(0.1, 0.3)", "link1.EI": [20.0, 30.0]},
        }
    ).tune

    assert tune.free == {"gains.Gp": (10.0, 2000.0), "gains.Gv": "*0.5:*2"}
    assert tune.minimise == ("residual.settling_time",)
    assert tune.subject_to == ("margins.gain_db>=6",)
    assert tune.over["link1.EI"] == (20.0, 30.0)
    assert tune.untied is False


def test_free_numbers_may_be_keys_alone():
    assert with_tune({"free": ["gains.Gp", "gains.Gv"]}).tune.free == {
        "gains.Gp": None,
        "gains.Gv": None,
    }


def test_a_design_without_the_table_has_none():
    assert HUB.tune is None


@pytest.mark.parametrize(
    ("tune", "expected"),
    [
        ({"fre": {}}, "own: tune.fre: expected a known key (nearest: free), got fre"),
        ({"free": {}}, "own: tune.free: expected at least 1 entry, got 0 entries"),
        ({"free": 3}, "own: tune.free: expected a table of bounds by key, or an array of keys"),
        ({"free": {"gains.Gp": [5, 1]}}, "gains.Gp: expected two finite numbers, the"),
        ({"free": {"gains.Gp": [5]}}, "gains.Gp: expected two finite numbers, the"),
        (
            {"free": {"gains.Gp": [1, True]}},
            "gains.Gp: expected two finite numbers, the lesser first",
        ),
        (
            {"free": {"gains.Gp": [1, float("inf")]}},
            "own: tune.free.gains.Gp: expected two finite numbers, the lesser first",
        ),
        ({"free": {"gains.Gp": ""}}, "own: tune.free.gains.Gp: expected two finite numbers"),
        ({"over": {"payload.mass": float("inf")}}, "own: tune.over.payload.mass: expected a text"),
        ({"over": {"payload.mass": ""}}, "own: tune.over.payload.mass: expected a text such as"),
        ({"free": ["gains.Gp", "gains.Gp"]}, "tune.free: expected each key once"),
        ({"minimise": []}, "own: tune.minimise: expected a metric, got nothing"),
        ({"minimise": 3}, "own: tune.minimise: expected an array"),
        ({"subject_to": [3]}, "own: tune.subject_to[1]: expected a text in quotes, got 3"),
        ({"over": {"payload.mass": {}}}, "payload.mass: expected a text such as"),
        ({"over": "payload.mass"}, "own: tune.over: expected a table of variations by key"),
        ({"untied": 1}, "own: tune.untied: expected true or false, got 1"),
    ],
)
def test_what_is_wrong_is_refused_in_one_line(tune, expected):
    with pytest.raises(InputError) as refused:
        with_tune(tune)
    assert expected in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("name", [entry.name for entry in list_designs()])
def test_a_design_is_read_again_from_its_text(name, tmp_path):
    design = load_design(name)
    path = tmp_path / f"{name}.toml"
    path.write_text(design_text(design, tmp_path, 'one\n\n"two"'), encoding="utf-8")
    again = load_design(path)

    assert path.read_text().startswith('# one\n#\n# "two"\n')
    assert again.reference_file is None or again.reference_file.resolve().is_file()
    ours, own = (one.model_dump(exclude={"path", "expect"}) for one in (design, again))
    for table in (ours, own):  # paths are relative to the folders
        table["reference"].pop("file")
    assert own == ours


def test_paths_of_other_files_are_relative_to_the_new_folder(tmp_path):
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    (here / "motion.csv").write_text("t,joint1\n0,0\n1,1\n")
    table = {**HUB.table(), "reference": {"kind": "csv", "file": "motion.csv"}}
    design = build_file(Design, table, "own", here / "own.toml")
    (there / "new.toml").write_text(design_text(design, there))

    again = load_design(there / "new.toml")

    assert again.reference.file == "../here/motion.csv"
    assert again.reference_file.resolve() == here / "motion.csv"


def test_a_motion_in_memory_has_no_file(tmp_path):
    class Motion:
        function = None
        rests = True
        start, final, duration = np.zeros(1), np.ones(1), 1.0

    memory = {"kind": "motion", "from": [0.0], "to": [1.0], "motion": Motion()}
    design = build_file(Design, {**HUB.table(), "reference": memory}, "own", None)
    with pytest.raises(InputError, match="own: reference: expected a motion of a file, got"):
        design_text(design, tmp_path)


@pytest.mark.parametrize(
    "table",
    [
        {"a": 1, "b": 2.5e-7, "c": True, "d": 'quotes " and \\ and \n and \x7f and é'},
        {"a": [1.0, 2.0], "t": {"inner": {"deep": [[1, 2], [3, 4]]}, "empty": {}, "e": []}},
        {"t": {"gains.Gp": [1, 2], "with space": {"x.y": "z"}}},
    ],
)
def test_text_of_a_table_is_the_table(table):
    assert tomllib.loads(toml_text(table)) == table
