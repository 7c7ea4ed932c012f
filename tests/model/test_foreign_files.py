"""Files as other programs write them: marks at the beginning, semicolons, line ends."""

import numpy as np
import pytest

from flexctl.errors import InputError
from flexctl.model.files import read_csv
from flexctl.model.lookup import load_model
from flexctl.model.samples import load_samples

MOTION = "t,joint1,joint2\n0,0.5,1\n0.1,0.25,-1.5e-3\n"
WRITTEN = {
    "plain": MOTION.encode(),
    "mark": b"\xef\xbb\xbf" + MOTION.encode(),
    "Windows": MOTION.replace("\n", "\r\n").encode(),
    "blank lines": ("\n" + MOTION.replace("\n", "\n\n")).encode(),
    "semicolons": MOTION.replace(",", ";").encode(),
    "decimal commas": MOTION.replace(",", ";").replace(".", ",").encode(),
    "spreadsheet": b"\xef\xbb\xbf"
    + MOTION.replace(",", ";").replace(".", ",").replace("\n", "\r\n").encode(),
}


@pytest.mark.parametrize("way", WRITTEN)
def test_a_motion_is_read_however_it_was_written(way, tmp_path):
    path = tmp_path / "motion.csv"
    path.write_bytes(WRITTEN[way])
    found = load_samples(path)

    assert (found.t == [0, 0.1]).all()
    assert (found.joint == np.array([[0.5, 0.25], [1, -1.5e-3]])).all()


def test_decimal_commas_between_commas_are_refused(tmp_path):
    path = tmp_path / "motion.csv"
    path.write_text("t,joint1\n0,0,5\n")

    with pytest.raises(InputError, match="line 2"):
        load_samples(path)


def test_thousands_between_semicolons_are_refused(tmp_path):
    path = tmp_path / "motion.csv"
    path.write_text("t;joint1\n0;1.234,5\n1;2\n")

    with pytest.raises(InputError, match="line 2"):
        load_samples(path)


def test_a_file_without_rows_has_none(tmp_path):
    path = tmp_path / "empty.csv"
    path.write_text("")

    assert read_csv(path) == []


@pytest.mark.parametrize("before", [b"", b"\xef\xbb\xbf"], ids=["plain", "mark"])
def test_a_model_is_read_with_the_mark_of_utf_8(before, tmp_path):
    path = tmp_path / "arm.toml"
    text = b'summary = "x"\r\nsource = "own"\r\ngravity = [0.0, 0.0, 0.0]\r\n'
    path.write_bytes(before + text + b'[[link]]\r\njoint = "revolute"\r\njoint_inertia = 1.0\r\n')

    assert load_model(path).links[0].joint_inertia == 1.0


def test_an_entry_without_end_is_refused_with_its_line(tmp_path):
    path = tmp_path / "motion.csv"
    path.write_text("t,joint1\n0," + "1" * 200_000 + "\n")

    with pytest.raises(InputError, match=r"motion\.csv: line 2: expected entries of a CSV file"):
        load_samples(path)
