"""Files are whole or not there, and a disk that is full is one line."""

import io
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from flexctl.errors import InputError
from flexctl.model import files
from flexctl.model.files import drafts
from flexctl.view.figures.style import new_figure
from flexctl.view.options import PlotOptions
from flexctl.view.output import Result, deliver, replacing, save_figure, written
from flexctl.view.signals import write_netcdf

xarray = pytest.importorskip("xarray")
resource = pytest.importorskip("resource")  # a limit of the size of files stands for a full disk
BYTES = 4000


@contextmanager
def full_disk():
    """Let no file grow beyond 4000 bytes, for root neither: what the tests print to neither."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (BYTES, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def draw():
    figure = new_figure(4.0, 3.0)
    figure.subplots().plot(np.sin(np.arange(1000.0)))
    return figure


@pytest.mark.parametrize("kind", ["svg", "png", "pdf"])
def test_a_figure_that_does_not_fit_is_one_line_and_leaves_the_old_one(kind, tmp_path):
    path = tmp_path / f"figure.{kind}"
    path.write_text("old")

    with (
        pytest.raises(InputError, match="cannot be written: File too large") as caught,
        full_disk(),
    ):
        save_figure(draw(), path)

    assert str(path) in str(caught.value)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]
    assert path not in written


@pytest.mark.parametrize("option", ["out", "plot", "front"])
def test_an_answer_is_printed_although_its_file_does_not_fit(option, tmp_path, capsys):
    path = tmp_path / {"out": "a.json", "plot": "a.svg", "front": "a.toml"}[option]
    lost = InputError(f"{path}: cannot be written: File too large") if option == "front" else None
    result = Result(
        answer={"a": list(range(2000))},
        table=lambda: "the table",
        figure=draw,
        unwritten=[lost] if lost else [],
    )
    options = PlotOptions(**({} if lost else {option: path}))
    with pytest.raises(InputError, match="cannot be written: File too large"), full_disk():
        deliver(result, options, ())
    assert capsys.readouterr().out == "the table\n"
    assert list(tmp_path.iterdir()) == []


def test_every_file_that_cannot_be_written_is_named(tmp_path, capsys):
    front = InputError("front: cannot be written: File too large")
    result = Result(
        answer={"a": list(range(2000))}, table=lambda: "", figure=draw, unwritten=[front]
    )
    options = PlotOptions(out=tmp_path / "a.json", plot=tmp_path / "a.svg")
    with pytest.raises(InputError, match="front: cannot be written"), full_disk():
        deliver(result, options, ())
    lines = capsys.readouterr().err.splitlines()
    assert [line.partition(": cannot")[0] for line in lines] == [
        f"flexctl: {tmp_path}/a.json",
        f"flexctl: {tmp_path}/a.svg",
    ]


@pytest.mark.slow
def test_netcdf_that_does_not_fit_ends_in_words_not_in_a_segmentation_fault(tmp_path):
    """In a process of its own, as the fault would end this one."""
    path = tmp_path / "run.nc"
    code = f"""
import resource, numpy as np, xarray as xr
from pathlib import Path
from flexctl.view.output import replacing
from flexctl.view.signals import write_netcdf
resource.setrlimit(resource.RLIMIT_FSIZE, ({BYTES}, {BYTES}))
data = xr.Dataset({{"a": ("t", np.random.rand(10000))}})
try:
    with replacing(Path({str(path)!r})) as draft:
        write_netcdf(draft, data)
except ValueError as error:
    print(error)
del data
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{path}: cannot be written: File too large\n"
    assert list(tmp_path.iterdir()) == []


def test_netcdf_is_read_back_as_it_was_written(tmp_path):
    path, values = tmp_path / "run.nc", np.random.default_rng(1).random(50)
    write_netcdf(path, xarray.Dataset({"a": ("t", values)}))
    with xarray.open_dataset(io.BytesIO(path.read_bytes()), engine="h5netcdf") as found:
        assert (found["a"].values == values).all()


def test_what_is_written_reaches_the_disk_before_it_is_renamed(tmp_path, monkeypatch):
    order = []
    sync, rename = files.os.fsync, files.os.replace
    monkeypatch.setattr(files.os, "fsync", lambda file: order.append("sync") or sync(file))
    monkeypatch.setattr(files.os, "replace", lambda a, b: order.append("rename") or rename(a, b))
    files.write_sealed(tmp_path / "a.txt", b"text")

    assert order == ["sync", "rename"]
    assert not drafts


def test_a_draft_is_known_while_it_is_written(tmp_path):
    """So that an end that unwinds nothing can remove it."""
    with replacing(tmp_path / "a.txt") as draft:
        assert drafts == {draft}
        draft.write_text("text")

    assert (tmp_path / "a.txt").read_text() == "text"
    assert not drafts


@pytest.mark.slow_but("[[]'--help']")
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
@pytest.mark.parametrize("words", [["list"], ["list", "--json"], ["--help"]], ids=str)
def test_standard_output_on_a_full_disk_is_one_line_and_status_3(words):
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "flexctl", *words],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )

    said = "flexctl: standard output: cannot be written: No space left on device\n"
    assert (done.returncode, done.stderr) == (3, said)
