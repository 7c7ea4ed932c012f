"""Sweeps and scatter on the command line: files, figures, refusals."""

import io
import json
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import xarray as xr
from pyarrow import parquet
from rich.console import Console

from flexctl.errors import ComputationError, InputError
from flexctl.model.lookup import load_model
from flexctl.model.record import BasisChoice
from flexctl.search.statistics import summarise
from flexctl.search.sweeps import sweep
from flexctl.view.commands.scattering import _keep_worst
from flexctl.view.commands.sweeping import _table, write_netcdf, write_parquet
from flexctl.view.figures.sweep import plot_sweep
from flexctl.view.interrupts import signalled

ARM = "single-link-hub"
GRID = ["--vary", "gains.Gp=10:60:3", "--vary", "gains.Gv=0.2:6:3", "--metrics", "linear"]
SCATTER = ["--truth-vary", "payload.mass=uniform(0.1,0.4)", "--samples", "5"]
DRAWN = ["--plot", "drawn.svg", "--figure"]
JOBS = ["--jobs", "1", "--truth-elements", "2"]


@pytest.mark.slow_but("varied4-curve", "varied2-parallel", "varied3-histogram")
@pytest.mark.parametrize(
    ("varied", "kind"),
    [
        (GRID, "map"),
        (GRID, "pareto"),
        (GRID, "parallel"),
        (GRID, "histogram"),
        (["--vary", "gains.Gp=-5:60:5", "--metrics", "linear"], "curve"),
        (SCATTER, "histogram"),
        (SCATTER, "parallel"),
    ],
)
def test_figures(flexctl, tmp_path, varied, kind):
    limits = ["--limit", "stability.min_damping_ratio>=0.0085"]
    file = tmp_path / "f.svg"
    words = [ARM, "hub-pd", *varied, *JOBS, *limits, "--figure", kind, "--plot", file]
    said = flexctl("sweep", *words)
    assert said.status == 0, said.err
    assert "stable and keeps stability.min_damping_ratio >= 0.0085" in said.out
    assert file.stat().st_size > 5000


@pytest.mark.parametrize("kind", ["parallel", "histogram", "pareto"])
def test_a_metric_that_is_nowhere_finite_is_drawn_too(flexctl, tmp_path, kind):
    words = [*SCATTER, *JOBS, "--metrics", "margins.gain_db,margins.disk", "--figure", kind]
    said = flexctl("sweep", ARM, "hub-pd", *words, "--plot", tmp_path / "f.png")
    assert said.status == 0, said.err


def test_a_front_of_full_metrics_is_judged_although_linear_ones_were_asked(flexctl):
    words = [*GRID[:2], "--metrics", "linear", "--pareto", "margins.disk,effort.peak", *JOBS]
    said = flexctl("sweep", ARM, "hub-pd", *words)
    assert said.status == 0, said.err
    assert "Pareto front of margins.disk and effort.peak" in said.out


def test_files_hold_the_same_numbers_with_units(flexctl, tmp_path):
    files = {kind: tmp_path / f"t.{kind}" for kind in ("json", "csv", "nc", "parquet")}
    for file in files.values():
        assert flexctl("sweep", ARM, "hub-pd", *GRID, *JOBS, "--out", file).status == 0
    answer = json.loads(files["json"].read_text())
    table = parquet.read_table(files["parquet"])
    assert table.schema.field("gains.Gp").metadata[b"unit"] == b"N m/rad"
    assert json.loads(table.schema.metadata[b"provenance"])["command"]
    key = "stability.spectral_abscissa"
    told = [point["metrics"][key] for point in answer["points"]]
    assert table.column(key).to_pylist() == told
    rows = files["csv"].read_text().splitlines()
    assert len(rows) == 1 + len(told) == 10
    with xr.open_dataset(files["nc"]) as data:
        np.testing.assert_array_equal(data[key].transpose(..., "design").values.ravel(), told)
        assert data[key].attrs["units"] == "1/s"
        assert data["gains.Gp"].attrs["units"] == "N m/rad"
    assert answer["pareto"][0]["point"] in range(9)
    assert answer["pareto_metrics"] == [key, "stability.min_damping_ratio"]


def test_units_of_files_axes_and_tables_are_those_of_the_arm(tmp_path):
    how = {"metrics": "linear", "jobs": 1, "truth_basis": BasisChoice(order=1)}
    linear = sweep(ARM, "hub-pd", {"gains.Gp": [10.0, 20.0]}, **how)
    found = replace(
        linear,
        metrics={**linear.metrics, "effort.peak": np.array([[1.0, 2.0], [3.0, 4.0]])},
        metric_units={**linear.metric_units, "effort.peak": "V or A"},
    )
    write_parquet(tmp_path / "t.parquet", found, "")
    write_netcdf(tmp_path / "t.nc", found, "")
    schema = parquet.read_table(tmp_path / "t.parquet").schema
    assert schema.field("effort.peak.1").metadata[b"unit"] == b"V or A"
    with xr.open_dataset(tmp_path / "t.nc") as data:
        assert data["effort.peak"].attrs["units"] == "V or A"
    figure = plot_sweep(found, "curve", ["effort.peak"], ["effort.peak"])
    assert figure.axes[0].get_ylabel() == "effort.peak [V or A]"
    told = io.StringIO()
    Console(file=told, width=140).print(_table(found, summarise(found), ["effort.peak"], [], []))
    assert "effort.peak V or A 2 2 4" in " ".join(told.getvalue().split())


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--vary", "gains.Gp=1,1", *DRAWN, "curve"], "one number that varies, got 0"),
        ([*GRID, *DRAWN, "curve"], "a grid over one number that varies, got 2"),
        ([*SCATTER, *DRAWN, "map"], "a grid over two numbers that vary, got samples"),
        ([*GRID, "--figure", "map"], "--figure: expected --plot FILE with it, got none"),
        ([*GRID, "--pareto", "margins.disk"], "two or more different metrics"),
        ([*GRID, "--pareto", "margins.disc,effort.peak"], "nearest: margins.disk"),
        ([*GRID, "--limit", "margins.disk"], "METRIC>=NUMBER"),
        ([*GRID, "--out", "t.txt"], "a file ending in"),
        ([*GRID, "--shapes", "new"], "new"),
        (["--truth-vary", "gains.Gp=1,2"], "numbers of the arm, got gains.Gp of the design"),
        (["--vary", "gains.Gp"], "KEY=SPEC or a CSV file"),
        (["--vary", "gains.Gp=1,2", "--vary", "gains.Gp=3"], "each key once"),
        (["--vary", "none.csv"], "expected a file, got nothing"),
        ([*GRID, "--truth-model", "theodore-ghosal-rrp"], "expected 1 links as"),
        (["--vary", "payload.mass=normal(1,0.1)"], "samples or latin"),
        ([*GRID, "--seed", "-1"], "--seed"),
        ([*GRID, "--seed", "2"], "--seed: expected normal(MEAN,DEVIATION) or uniform(FROM,TO) wi"),
        ([*GRID[:4], "--metrics", "full,margins.disk"], "metrics: expected full alone, got full,"),
        ([*GRID, "--ledger", Path(__file__).parent], "view: expected a file, got a folder"),
        (["--vary", "gains.Gp=1:2:100000", "--vary", "gains.Gv=1:2:10000"], "1,000,000,000"),
    ],
)
def test_bad_words_are_one_line(flexctl, words, expected):
    said = flexctl("sweep", ARM, "hub-pd", *words)
    assert said.status == 2
    assert expected in said.err
    assert said.err.count("\n") <= 1 or "Usage" in said.err


def test_one_point_is_no_plural(flexctl, tmp_path):
    words = [ARM, "hub-pd", "--vary", "gains.Gp=10", "--metrics", "linear", *JOBS]
    words += ["--ledger", tmp_path / "one.db"]
    said = [flexctl("sweep", *words).out for _ in range(2)]
    assert f"{ARM}, hub-pd: 1 point over gains.Gp" in said[0]
    assert "hub-pd is stable at 1 of 1 point (100 %)." in said[0]
    assert "1 point from the ledger" in said[1]


def test_without_arrow_a_parquet_file_is_refused_before_anything_is_judged(
    flexctl, monkeypatch, tmp_path
):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    said = flexctl("sweep", ARM, "hub-pd", *GRID, "--out", tmp_path / "t.parquet")
    assert said.status == 2
    assert "pip install 'flexctl[parquet]'" in said.err


@pytest.mark.slow
def test_compare_tells_shares_and_keeps_the_worst_arms(flexctl, tmp_path):
    words = ["compare", ARM, "hub-pd", *JOBS[2:], "--no-baseline"]
    scatter = ["--jobs", "1", "--scatter", "payload.mass=uniform(0.1,0.3)", "--samples", "3"]
    kept = ["--worst", tmp_path / "worst", "--report", tmp_path / "r.html", "--json"]
    answer = json.loads(flexctl(*words, *scatter, *kept).out)
    assert answer["scatter"]["n"] == answer["scatter"]["wins"]["hub-pd"] == 3
    assert answer["scatter"]["failed"] == {"hub-pd": 0}
    quantiles = answer["scatter"]["quantiles"]["hub-pd"]["residual.tip_error_max"]
    assert quantiles["0.05"] <= quantiles["0.5"] <= quantiles["0.95"]
    worst = answer["scatter"]["worst"]["hub-pd"]
    page = (tmp_path / "r.html").read_text()
    assert "On 3 sampled arms" in page
    assert worst["file"] in page
    own = ["--truth-model", tmp_path / "worst" / worst["file"], "--json"]
    told = json.loads(flexctl(*words, *own).out)["evaluations"][0]
    assert told["residual"]["tip_error_max"] == pytest.approx(quantiles["0.95"], rel=1e-9)
    assert flexctl("simulate", ARM, "hub-pd", *own[:2]).status == 0


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--samples", "3"], "--samples: expected --scatter KEY=SPEC with it, got none"),
        (["--shapes", "rebuilt"], "--shapes: expected --scatter KEY=SPEC with it"),
        (["--jobs", "2"], "--jobs: expected --scatter KEY=SPEC with it"),
        (["--seed", "2"], "--seed: expected --scatter KEY=SPEC with it"),
        (["--scatter", "payload.mass"], "expected KEY=SPEC or a CSV file"),
        (
            ["--scatter", "gains.Gp=1,2"],
            "--scatter: expected numbers of the arm, got gains.Gp of the",
        ),
        (["--scatter", "payload.mass=normal(1)"], "a mean, and a deviation"),
        (
            ["--scatter", "payload.mass=1,2", "--seed", "3"],
            "--seed: expected normal(MEAN,DEVIATION) or uniform(FROM,TO) with it, got none",
        ),
        (["--scatter", "payload.mass=normal(1,0.1)", "--worst", "/proc/no/where"], "a folder"),
    ],
)
def test_bad_words_of_scatter_are_refused(flexctl, words, expected):
    said = flexctl("compare", ARM, "hub-pd", *words)
    assert said.status == 2
    assert expected in said.err


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--jobs", "1", "--scheduler", "tcp://host:1"], "jobs: expected none with a scheduler"),
        (["--scheduler", "here"], "scheduler: expected an address such as tcp://host:8786"),
        (["--ledger", "."], ".: expected a file, got a folder"),
        (["--ledger", "no/where.db"], "no/where.db: expected an existing folder, got no"),
        (["--scatter", "payload.mas=0.1,0.2"], "payload.mas: expected a known key (nearest: mass)"),
    ],
)
def test_what_cannot_scatter_is_refused_before_the_comparison(
    flexctl, monkeypatch, words, expected
):
    monkeypatch.setattr("flexctl.view.commands.comparison.compare", None)
    said = flexctl("compare", ARM, "hub-pd", "--scatter", "payload.mass=0.1,-1", *words)
    assert (said.status, said.out, said.err.count("\n")) == (2, "", 1)
    assert expected in said.err


@pytest.mark.slow_but("ComputationError-True-130")
@pytest.mark.parametrize(
    ("error", "interrupted", "status"),
    [(InputError, False, 2), (ComputationError, False, 3), (ComputationError, True, 130)],
)
def test_a_comparison_is_told_although_its_scatter_fails(
    flexctl, monkeypatch, error, interrupted, status, tmp_path
):
    def fail(*_given, **_how):
        if interrupted:
            signalled.set()
        raise error("no scatter")

    monkeypatch.setattr("flexctl.view.commands.scattering.scatter", fail)
    words = [*JOBS[2:], "-m", "1", "--no-baseline", "--scatter", "payload.mass=0.2", "--json"]
    said = flexctl("compare", ARM, "hub-pd", *words, "--report", tmp_path / "r.html")
    answer = json.loads(said.out)

    assert answer["ranking"] == ["hub-pd"]
    assert "scatter" not in answer
    assert said.status == status
    written = f"interrupted, {tmp_path}/r.html written"
    assert said.err == f"flexctl: {written if interrupted else 'no scatter'}\n"


def test_a_folder_that_takes_no_files_is_refused_before_the_work(flexctl, monkeypatch, tmp_path):
    monkeypatch.setattr("os.access", lambda _path, _mode: False)
    words = ["--scatter", "payload.mass=0.1,0.2", "--worst", tmp_path / "new"]
    said = flexctl("compare", ARM, "hub-pd", *words)

    assert (said.status, said.out) == (2, "")
    assert said.err == f"flexctl: --worst: expected a folder to write to, got {tmp_path}/new\n"


def test_worst_arms_that_cannot_be_written_are_told_later(monkeypatch, tmp_path):
    def refuse(*_words):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("flexctl.model.replacing_file", refuse)
    worst = SimpleNamespace(sample=0, why="unstable", arm=load_model(ARM))
    found = SimpleNamespace(worst={"a": worst, "b": worst}, sweep=SimpleNamespace(model=ARM))
    unwritten = []

    assert _keep_worst(found, tmp_path / "worst", unwritten) == {}
    assert [str(error).partition(": ")[0] for error in unwritten] == [
        f"{tmp_path}/worst/{ARM}-worst-for-{name}.toml" for name in "ab"
    ]


@pytest.mark.slow
def test_an_answer_is_printed_although_files_beside_it_cannot_be_written(
    flexctl, monkeypatch, tmp_path
):
    def refuse(*_words):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("flexctl.model.replacing_file", refuse)
    scatter = ["--jobs", "1", "--scatter", "payload.mass=0.2", "--no-baseline", "--json"]
    files = ["--worst", tmp_path / "worst", "--report", tmp_path / "r.html"]
    said = flexctl("compare", ARM, "hub-pd", *JOBS[2:], *scatter, *files)

    assert said.status == 2
    assert json.loads(said.out)["scatter"]["worst"]["hub-pd"]["file"] is None
    assert [line.rpartition(": ")[0] for line in said.err.splitlines()] == [
        f"flexctl: {tmp_path}/r.html: cannot be written",
        f"flexctl: {tmp_path}/worst/{ARM}-worst-for-hub-pd.toml: cannot be written",
    ]


def test_points_are_listed_and_those_refused_are_named_apart(flexctl, tmp_path):
    words = [ARM, "hub-pd", "--vary", "gains.Gp=-5,10,60", "--metrics", "linear", *JOBS]
    said = flexctl("sweep", *words, "--out", tmp_path / "t.csv").out
    assert "2 points over gains.Gp; 1 more not evaluated" in said
    row = next(line for line in said.splitlines() if line.split()[:1] == ["-5"])
    assert row.split() == ["-5", "none", "none", "not", "evaluated"]
    assert "variance of the ranks" not in said
    told = (tmp_path / "t.csv").read_text().splitlines()[1]
    assert "not evaluated: " in told
    answer = json.loads(flexctl("sweep", *words, "--json").out)
    assert answer["n_not_evaluated"] == 1
    assert [one["not_evaluated"] for one in answer["points"]] == [True, False, False]
    assert answer["summary"][0]["stable"]["of"] == 2


def test_of_many_points_the_worst_are_listed_the_unstable_ones_first(flexctl):
    gains = ["--vary", "gains.Gp=10:60:7", "--vary", "gains.Gv=0.5:6:3"]
    words = [ARM, "hub-pd", *gains, "--metrics", "stability.min_damping_ratio", *JOBS]
    said = flexctl("sweep", *words).out
    assert "hub-pd: the 10 worst of 21 evaluated points" in said
    answer = json.loads(flexctl("sweep", *words, "--json").out)
    least = min(one["metrics"]["stability.min_damping_ratio"] for one in answer["points"])
    lines = said[said.index("the 10 worst") :].splitlines()
    first = next(line for line in lines if line.split() and line.split()[-1] == "stable")
    assert float(first.split()[2]) == pytest.approx(least, rel=1e-3)


def test_samples_whose_arm_is_refused_count_in_no_share(flexctl):
    scatter = ["--jobs", "1", "--scatter", "link1.damping_ratio=0.01,1.5", "--no-baseline"]
    said = flexctl("compare", ARM, "hub-pd", *JOBS[2:], *scatter, "--json")
    answer = json.loads(said.out)["scatter"]
    assert (answer["n"], answer["not_evaluated"], answer["failed"]) == (1, 1, {"hub-pd": 0})
    assert "less than 1, got 1.5" in answer["verdict"]
