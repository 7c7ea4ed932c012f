"""Sweeps: points, their verdicts, and a ledger that loses nothing."""

import contextlib
import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
from types import SimpleNamespace

import numpy as np
import psutil
import pytest
import scipy.stats

from flexctl import evaluate, load_design, load_model
from flexctl.control import design_controller
from flexctl.errors import FlexctlError, FlexctlWarning, InputError
from flexctl.loop import close_loop
from flexctl.model import BasisChoice, apply_settings, with_value
from flexctl.search.ledger import Ledger, Row
from flexctl.search.limits import read_limit
from flexctl.search.samples import make_points, read_variation
from flexctl.search.statistics import share, summarise
from flexctl.search.sweeps import Sweep, _chunks, _units_on, sweep
from flexctl.verdict import LINEAR, UNITS, linear_metrics, metrics
from flexctl.view.words.sweep import sweep_words

TRUTH = BasisChoice(kind="elements", order=2)
ARM, DESIGN = "single-link-hub", "hub-pd"


def test_orders_of_a_discretisation_are_no_factors():
    with pytest.raises(InputError, match=r"^elements: expected orders, not factors, got \*2, \*3$"):
        read_variation("elements", "*2:*3")


def test_a_grid_has_all_combinations_and_the_samples_change_fastest():
    points = make_points({"a": "0:1:3", "b": [1, 2], "c": "uniform(0, 2)"}, samples=4, seed=3)
    rows = [points.at(k) for k in range(len(points))]

    assert len(rows) == 24
    assert {(row["a"], row["b"]) for row in rows} == {(a, b) for a in (0, 0.5, 1) for b in (1, 2)}
    assert [row["c"] for row in rows[:4]] == [row["c"] for row in rows[20:]]
    assert rows[0]["a"] == rows[7]["a"] != rows[8]["a"]


@pytest.mark.parametrize("seed", [-1, 0.5])
def test_a_seed_is_a_whole_number(seed):
    with pytest.raises(InputError, match=rf"^seed: expected a whole number.*, got {seed}$"):
        make_points({"a": "uniform(0, 1)"}, samples=1, seed=seed)


@pytest.mark.parametrize("latin", [True, False])
def test_samples_have_their_distributions(latin):
    n = 4000
    how = {"latin": n} if latin else {"samples": n}
    points = make_points({"a": "normal(2, 0.5)", "b": "uniform(-1, 3)"}, seed=1, **how)
    a, b = points.samples.T

    assert scipy.stats.kstest((a - 2) / 0.5, "norm").pvalue > 0.01
    assert scipy.stats.kstest((b + 1) / 4, "uniform").pvalue > 0.01
    assert abs(np.corrcoef(a, b)[0, 1]) < 0.05
    if latin:  # each of n equally probable intervals is met once
        places = np.sort((n * scipy.stats.norm.cdf((a - 2) / 0.5)).astype(int))
        np.testing.assert_array_equal(places, np.arange(n))


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("normal(1)", "a mean, and a deviation above 0"),
        ("normal(1, -2)", "a mean, and a deviation above 0"),
        ("uniform(2, 1)", "two ascending ends"),
        ("cauchy(0, 1)", "normal or uniform"),
        ("0:1:1", "a count of 2 or more"),
        ("0:1:1000000000", "a count of at most 10,000,000, got 1,000,000,000"),
        ("1:0:5", "FROM below TO"),
        ("0:nan:5", "FROM:TO:COUNT"),
        ("1, *2", "numbers or factors"),
        ("", "FROM:TO:COUNT"),
        ([np.inf], "numbers"),
    ],
)
def test_what_cannot_be_read_is_refused(spec, expected):
    with pytest.raises(InputError, match=r"gains\.Gp: expected .*" + re.escape(expected)):
        read_variation("gains.Gp", spec)


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ({"vary": {"payload.mass": "normal(1, 0.1)"}}, "samples or latin"),
        ({"vary": {"payload.mass": "0:1:5"}, "samples": 5}, "a number with a distribution"),
        ({"vary": {}}, "at least one number"),
        ({"vary": {"payload.masss": "0:1:5"}}, "nearest: mass"),
        ({"vary": {"gainz.Gp": "1:2:5"}}, "nearest: "),
        ({"vary": {"gains.Gq": "1:2:5"}}, "gains.*Gq"),
        ({"vary": {"elements": [1.5]}}, "whole numbers"),
        ({"vary": {"gains.Gp": ["a"]}}, "gains.Gp: expected real numbers, got "),
        ({"vary": {"modes": [0]}}, "whole numbers of 1 or more, got 0"),
        ({"vary": {"modes": [500]}}, "modes: order: expected at most 200, got 500"),
        ({"vary": {}, "truth_vary": {"elements": [500]}}, "at most 200, got 500"),
        ({"vary": {"gains.Gp": "0:1:1000", "gains.Gv": "0:1:1000000"}}, "1,000,000,000"),
        ({"vary": {"gains.Gp": "1:2:2"}, "metrics": "margin.disk"}, "nearest: margins.disk"),
    ],
)
def test_a_sweep_that_cannot_be_is_refused(how, expected):
    with pytest.raises(InputError, match=expected):
        sweep(ARM, DESIGN, how.pop("vary"), **how, jobs=1)


VARY = {"gains.Gp": "*0.5:*2:3", "payload.mass": [0.0, 0.3], "link1.length": "*0.95:*1.05:2"}


@pytest.mark.slow
def test_every_point_has_the_verdict_of_the_loop_made_anew():
    vary = VARY | {"gains.Gv": [4.0]}
    found = sweep(ARM, DESIGN, vary, truth_vary={"link1.EI.y": [14.0]}, truth_basis=TRUTH, jobs=1)
    assert found.n_points == 12
    assert found.done.all()
    assert not found.failed
    arm, design = load_model(ARM), load_design(DESIGN)
    for k in (0, 5, 11):
        values = dict(zip(found.keys, found.values[k].tolist(), strict=True))
        own = with_value(design, "gains.Gp", values["gains.Gp"], factor=True)
        own = with_value(own, "gains.Gv", values["gains.Gv"])
        settings = [
            f"payload.mass={values['payload.mass']!r}",
            f"link1.length=*{values['link1.length']!r}",
        ]
        changed = apply_settings(arm, settings)
        truth = apply_settings(changed, ["link1.EI.y=14.0"])
        verdict = metrics(evaluate(close_loop(design_controller(changed, own), truth, TRUTH)))
        assert list(found.metrics) == list(UNITS) == list(verdict)
        for key, value in verdict.items():
            if key == "stability.stable":
                assert found.metrics[key][k] == value
            elif value is None:
                assert np.isnan(found.metrics[key][k])
            else:
                np.testing.assert_allclose(found.metrics[key][k], value, rtol=1e-5, atol=1e-9)


@pytest.mark.slow
def test_linear_metrics_are_those_of_full_verdicts():
    loop = close_loop(design_controller(ARM, DESIGN), ARM, TRUTH)
    full = metrics(evaluate(loop))
    assert linear_metrics(loop) == {key: full[key] for key in LINEAR}


def test_a_design_that_fails_is_a_row_with_its_reason():
    found = sweep(ARM, DESIGN, {"gains.Gp": [-1.0, 2.0]}, metrics="linear", jobs=1)
    assert list(found.failed) == [0]
    assert "gains.Gp" in found.failed[0]
    assert np.isnan(found.metrics["stability.min_damping_ratio"]).tolist() == [True, False]


def test_a_ledger_finds_what_is_there(tmp_path):
    file = tmp_path / "sweep.db"
    how = {"metrics": "linear", "jobs": 1, "ledger": file, "truth_basis": TRUTH}
    first = sweep(ARM, DESIGN, {"gains.Gp": "1:2:5"}, **how)
    again = sweep(ARM, DESIGN, {"gains.Gp": "1:2:5"}, **how)
    assert (first.resumed, again.resumed, again.others) == (0, 5, 0)
    for key, values in first.metrics.items():
        np.testing.assert_array_equal(values, again.metrics[key])

    heavier = apply_settings(load_model(ARM), ["payload.mass=0.7"])
    other = sweep(heavier, DESIGN, {"gains.Gp": "1:2:5"}, **how)
    assert (other.resumed, other.others) == (0, 5)
    with pytest.raises(InputError, match=r"got that of single-link-hub with hub-pd over gains\.Gp"):
        sweep(ARM, DESIGN, {"gains.Gv": "1:2:5"}, **how)
    assert sweep(ARM, DESIGN, {"gains.Gp": "1:2:5"}, **how).resumed == 5


@pytest.mark.parametrize("content", [b"no database at all, but long enough to be one", b""])
def test_another_file_is_no_ledger(tmp_path, content):
    file = tmp_path / "other.db"
    file.write_bytes(content * 50)
    if not content:  # an empty file becomes one
        Ledger(file, "x", {}).add([Row(point=0, metrics=None)])
        return
    with pytest.raises(InputError, match="expected a ledger of flexctl, got another file"):
        Ledger(file, "x", {})
    assert file.read_bytes() == content * 50


def test_rows_are_kept_once_and_in_order(tmp_path):
    label = {"model": "m", "designs": ["d"], "keys": ["k"]}
    rows = [Row(point=k, metrics={"a": [1 / 3, np.inf]}, failed="why") for k in (2, 0, 1)]
    with Ledger(tmp_path / "l.db", "content", label) as book:
        book.add(rows)
        book.add([Row(point=0, metrics=None)])
        assert len(book) == 3
        assert list(book.rows()) == sorted(rows, key=lambda row: row.point)


@pytest.mark.parametrize("text", ["[1, 2", "[1, 2]", "3"])
@pytest.mark.parametrize("read", [lambda book: list(book.rows()), lambda book: book.get(0)])
def test_a_row_that_is_none_of_a_ledger_is_told_in_one_line(tmp_path, text, read):
    label = {"model": "m", "designs": ["d"], "keys": ["k"]}
    with Ledger(tmp_path / "l.db", "content", label) as book:
        book.add([Row(point=0, metrics=None)])
        book._file.execute("update points set row = ?", [text])
        with pytest.raises(FlexctlError, match=r"l.db: cannot be read \(.*what is there is kept"):
            read(book)


@pytest.mark.parametrize("metrics", ["full", "linear"])
def test_a_compiler_that_is_not_there_is_refused_once_and_no_row_keeps_it(
    metrics, tmp_path, monkeypatch
):
    monkeypatch.setenv("FLEXCTL_CC", "gcc-99")
    how = {"metrics": metrics, "jobs": 1, "ledger": tmp_path / "l.db", "truth_basis": TRUTH}
    with pytest.raises(InputError, match="FLEXCTL_CC: expected a C compiler or none, got 'gcc-99'"):
        sweep(ARM, DESIGN, {"gains.Gp": [10.0, 20.0]}, **how)
    assert judged(tmp_path / "l.db") == 0


def test_a_ledger_that_is_lost_while_its_rows_are_read_is_told_in_one_line(tmp_path):
    with Ledger(tmp_path / "l.db", "content", {"model": "m", "designs": [], "keys": []}) as book:
        book.add([Row(point=0, metrics=None)])
        book._file.execute("drop table points")
        with pytest.raises(FlexctlError, match="cannot be read"):
            list(book.rows())


_SWEEP = """
import sys
from flexctl.model import BasisChoice
from flexctl.search.sweeps import sweep
if __name__ == "__main__":
    sweep("single-link-hub", "hub-pd", {"gains.Gp": f"*0.5:*2:{sys.argv[2]}"}, metrics="linear",
          truth_basis=BasisChoice(kind="elements", order=2), jobs=int(sys.argv[3]),
          ledger=sys.argv[1])
"""


def judged(file):
    """How many points a ledger holds."""
    try:
        with contextlib.closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as book:
            return book.execute("select count(*) from points").fetchone()[0]
    except sqlite3.Error:  # not there yet
        return 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n", "kills", "jobs"), [(300, 3, 1), pytest.param(1000, 20, 2, marks=pytest.mark.slow)]
)
def test_a_sweep_that_is_killed_loses_and_doubles_nothing(tmp_path, n, kills, jobs):
    script, file = tmp_path / "run.py", tmp_path / "killed.db"
    script.write_text(_SWEEP)
    words = [sys.executable, str(script), str(file), str(n), str(jobs)]
    rng = np.random.default_rng(0)
    met = 0  # kills while points were left
    for enough in np.sort(rng.integers(0, int(0.9 * n), kills)):
        run = subprocess.Popen(words, start_new_session=True)
        while run.poll() is None and judged(file) <= enough:
            time.sleep(0.002)
        time.sleep(rng.uniform(0.0, 0.05))
        os.killpg(run.pid, signal.SIGKILL)
        run.wait()
        met += judged(file) < n
    assert met >= kills // 2
    subprocess.run(words, check=True)
    how = {"metrics": "linear", "truth_basis": TRUTH, "jobs": 1}
    vary = {"gains.Gp": f"*0.5:*2:{n}"}
    resumed = sweep(ARM, DESIGN, vary, ledger=file, **how)
    whole = sweep(ARM, DESIGN, vary, **how)
    assert resumed.resumed == n
    for key, values in whole.metrics.items():
        np.testing.assert_array_equal(values, resumed.metrics[key])


@pytest.mark.slow
def test_one_process_and_two_give_the_same_table():
    vary = {"gains.Gp": "*0.5:*2:4", "payload.mass": [0.2, 0.5]}
    one, two = (sweep(ARM, DESIGN, vary, truth_basis=TRUTH, jobs=jobs) for jobs in (1, 2))
    for key, values in one.metrics.items():
        np.testing.assert_array_equal(values, two.metrics[key])


@pytest.mark.slow
def test_a_process_that_is_killed_ends_the_sweep_with_what_is_judged():
    def kill(_done, _of, _left):
        for process in psutil.Process().children():
            with contextlib.suppress(psutil.Error):  # killed before, and not yet gone
                if "popen_loky" in " ".join(process.cmdline()):
                    process.kill()

    how = {"metrics": "linear", "truth_basis": TRUTH, "jobs": 2}
    with pytest.warns(FlexctlWarning, match="a process that judged points was ended"):
        found = sweep(ARM, DESIGN, {"gains.Gp": "*0.5:*2:20000"}, progress=kill, **how)
    assert found.interrupted
    assert found.done.any()


@pytest.mark.slow
def test_units_are_those_of_all_designs():
    vary = {"gains.Gp": [20.0, 30.0], "elements": [1, 2]}
    how = {"metrics": "linear", "jobs": 1, "truth_basis": TRUTH}
    found = sweep("vertical-2r", ["vertical-2r-pd", "vertical-2r-decoupling"], vary, **how)
    assert found.units == ("N m/rad or 1/s^2", "")


@pytest.mark.parametrize(
    ("name", "joint", "command"),
    [("single-link-hub", "rad", "N m"), ("theodore-ghosal-rrp", "rad or m", "N m or N")],
)
def test_units_of_metrics_are_those_of_the_arm(name, joint, command):
    units = _units_on(load_model(name))
    assert units == UNITS | {
        **dict.fromkeys(("effort.peak", "effort.rms", "noise.torque_rms"), command),
        **dict.fromkeys(("tracking.joint_error_max", "friction.amplitude"), joint),
    }


def test_a_share_has_the_interval_of_clopper_and_pearson():
    found = share(np.array([True] * 7 + [False] * 3))
    low, high = scipy.stats.beta.ppf(0.025, 7, 4), scipy.stats.beta.ppf(0.975, 8, 3)
    assert (found.low, found.high) == pytest.approx((low, high), rel=1e-9)
    assert (share(np.zeros(0, dtype=bool)).low, share(np.ones(5, dtype=bool)).high) == (0, 1)


def test_the_share_of_evaluated_loops_is_that_of_the_scatter_and_all_are_stable():
    # u = -Gp (q - q_d) - Gv v on a rigid inertia is stable for all Gv > 0: under normal scatter of
    # Gv the share of files that are not refused is that of the normal distribution above zero
    found = sweep(
        ARM, DESIGN, {"gains.Gv": "normal(1, 1)"}, metrics="linear", jobs=1, samples=400, seed=2
    )
    (one,) = summarise(found)
    expected = scipy.stats.norm.cdf(1.0)
    evaluated = share(found.evaluated)
    np.testing.assert_array_equal(found.refused, found.values[:, 0] < 0)
    assert evaluated.low < expected < evaluated.high
    assert one.stable.count == one.stable.of == evaluated.count


def made_anew(arm, design, values, truth=None):
    """Close the loop of a design on an arm whose files have the values."""
    arm, design = load_model(arm), load_design(design)
    for key, value in values.items():
        if key.startswith("gains."):
            design = with_value(design, key, value)
        else:
            arm = apply_settings(arm, [f"{key}={value!r}"])
    return close_loop(design_controller(arm, design), arm, truth)


@pytest.mark.slow
def test_numbers_from_and_to_zero_derive_no_more_than_they_must(monkeypatch):
    weightless = apply_settings(load_model(ARM), ["payload.mass=0", "link1.length=0.9"])
    derived = []

    def count(*words):
        derived.append(words)
        return design_controller(*words)

    monkeypatch.setattr("flexctl.search.study.design_controller", count)
    vary = {"payload.mass": "0:0.4:5", "gains.Gp": "10:30:3"}
    found = sweep(weightless, DESIGN, vary, metrics="linear", jobs=1, truth_basis=TRUTH)
    assert len(derived) == 2  # with a payload and without
    for k, row in enumerate(found.values):
        values = dict(zip(found.keys, row.tolist(), strict=True))
        anew = linear_metrics(made_anew(weightless, DESIGN, values, TRUTH))
        for key, value in anew.items():
            np.testing.assert_allclose(found.metrics[key][k], value, rtol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("last", ["gains.Gp", "link1.length"])
def test_lengths_are_derived_once_each_in_any_order_of_the_keys(monkeypatch, last):
    derived = []

    def count(arm, *words):
        derived.append(arm.links[0].length)
        return design_controller(arm, *words)

    monkeypatch.setattr("flexctl.search.study.design_controller", count)
    monkeypatch.setattr("flexctl.search.study._KEPT", 2)
    vary = {"gains.Gp": "10:30:2", "link1.length": "0.7:1.1:3"}
    vary[last] = vary.pop(last)
    sweep(ARM, DESIGN, vary, metrics="linear", jobs=1)
    assert len(derived) == 3 + 1  # that of the file, which tells what is free


def test_processes_keep_their_equations_and_begin_with_others():
    equations = np.tile([0, 1, 2], 6)
    chunks = [chunk.tolist() for chunk in _chunks(np.arange(18), equations, 2, 2)]
    groups = [{equations[k] for k in chunk} for chunk in chunks]
    assert groups == [{0}, {1}, {0}, {1}, {0}, {1}, {2}, {2}, {2}]
    assert sorted(k for chunk in chunks for k in chunk) == list(range(18))


@pytest.mark.slow
def test_modes_keep_their_shapes_and_say_so_or_are_rebuilt():
    arm = load_model("theodore-ghosal-rrp")
    vary, basis = {"payload.mass": [0.05, 0.2]}, BasisChoice(kind="modes", order=2)
    how = {"metrics": "linear", "jobs": 1, "truth_basis": basis, "design_basis": basis}
    kept, rebuilt = (
        sweep(arm, "rrp-stiff", vary, shapes=shapes, **how) for shapes in ("kept", "rebuilt")
    )
    error, key, value = kept.shape_error
    assert (key, value) == ("payload.mass", 0.2)
    assert 1e-5 < abs(error.change) < 1e-2
    assert rebuilt.shape_error is None
    assert "--shapes rebuilt" in sweep_words(kept)
    assert "shapes" not in sweep_words(rebuilt)
    for k, mass in enumerate(vary["payload.mass"]):
        own = apply_settings(arm, [f"payload.mass={mass}"])
        loop = close_loop(design_controller(own, "rrp-stiff", basis), own, basis)
        for name, x in linear_metrics(loop).items():
            assert rebuilt.metrics[name][k] == float(x)
            assert kept.metrics[name][k] == pytest.approx(float(x), rel=0.05)
    with pytest.raises(InputError, match="shapes: expected kept or rebuilt, got 'new'"):
        sweep(arm, "rrp-stiff", vary, shapes="new")


@pytest.mark.slow
def test_every_design_keeps_the_discretisation_of_its_file():
    names = ["vertical-2r-pd", "vertical-2r-decoupling"]
    assert len({load_design(name).basis.label for name in names}) == 2
    vary = {"payload.mass": [0.3, 0.5]}
    how = {"metrics": "linear", "jobs": 1, "truth_basis": TRUTH}
    both = sweep("vertical-2r", names, vary, **how)
    for k, name in enumerate(names):
        alone = sweep("vertical-2r", name, vary, **how)
        for key, values in alone.metrics.items():
            np.testing.assert_array_equal(both.metrics[key][both.design == k], values)
    orders = sweep("vertical-2r", names, {"modes": [1, 2]}, **how)
    basis = BasisChoice(kind="modes", order=2)
    given = sweep("vertical-2r", names, {"payload.mass": "*1,*1.1"}, design_basis=basis, **how)
    key = "stability.spectral_abscissa"
    np.testing.assert_allclose(orders.metrics[key][2:], given.metrics[key][:2], rtol=1e-9)


def test_factors_multiply_what_each_arm_has():
    heavy = apply_settings(load_model(ARM), ["payload.mass=+50%", "link1.EI=*0.9"])
    vary = {"payload.mass": ["*1", "*1.2"], "link1.EI": "*1,*0.8"}
    vary["payload.mass"] = ",".join(vary["payload.mass"])
    found = sweep(ARM, DESIGN, vary, metrics="linear", true_arm=heavy, truth_basis=TRUTH, jobs=1)
    for k, (mass, stiff) in enumerate(found.values.tolist()):
        settings = [f"payload.mass=*{mass}", f"link1.EI=*{stiff}"]
        arm, truth = (apply_settings(one, settings) for one in (load_model(ARM), heavy))
        anew = linear_metrics(close_loop(design_controller(arm, DESIGN), truth, TRUTH))
        for key, value in anew.items():
            np.testing.assert_allclose(found.metrics[key][k], value, rtol=1e-9)
    with pytest.raises(InputError, match="expected it in vary or in truth_vary"):
        sweep(ARM, DESIGN, vary, truth_vary={"payload.mass": "*1,*2"})


def test_numbers_of_numpy_and_one_limit_by_itself_are_taken():
    one = np.int64(1)
    found = sweep(
        ARM,
        DESIGN,
        {"payload.mass": "uniform(0.1, 0.3)"},
        samples=2 * one,
        seed=one,
        jobs=one,
        metrics="linear",
        limits="stability.spectral_abscissa<=0",
        truth_basis=TRUTH,
    )

    assert type(found.jobs) is int
    assert found.within.tolist() == [True, True]
    plain = make_points({"payload.mass": "uniform(0.1, 0.3)"}, samples=2, seed=1)
    np.testing.assert_array_equal(found.values, plain.values)


def test_numbers_beyond_all_measure_are_rows():
    found = sweep(ARM, DESIGN, {"gains.Gp": [10.0, 1e308]}, metrics="linear", jobs=1)
    assert list(found.failed) == [1]


def test_a_ledger_knows_the_files_that_a_design_names(tmp_path):
    motion = tmp_path / "motion.csv"
    design = tmp_path / "own.toml"
    text = load_design(DESIGN).path.read_text()
    head, _, rest = text.partition("[reference]")
    rest = rest[rest.index("\n[") :]
    design.write_text(f'{head}[reference]\nkind = "csv"\nfile = "motion.csv"\n{rest}')
    how = {"metrics": "linear", "jobs": 1, "ledger": tmp_path / "l.db", "truth_basis": TRUTH}
    for end in (0.5, 1.0, 0.5):
        rows = [f"{t},{end * t**3 * (10 - 15 * t + 6 * t**2)}" for t in np.linspace(0, 1, 21)]
        motion.write_text("\n".join(["t,joint1", *rows]) + "\n")
        found = sweep(ARM, design, {"payload.mass": [0.1, 0.2]}, **how)
        assert not found.failed
    assert found.resumed == 2
    assert found.others == 2


def test_shares_have_intervals_only_of_independent_samples():
    drawn = {"payload.mass": "uniform(0.1, 0.3)"}
    how = {"metrics": "linear", "jobs": 1, "truth_basis": TRUTH}
    assert sweep(ARM, DESIGN, drawn, samples=3, **how).independent
    assert not sweep(ARM, DESIGN, drawn, latin=3, **how).independent
    grid = {**drawn, "gains.Gp": [10.0, 20.0]}
    found = sweep(ARM, DESIGN, grid, samples=3, **how)
    assert not found.independent
    assert "confidence" not in sweep_words(found)
    assert "confidence" in sweep_words(sweep(ARM, DESIGN, drawn, samples=3, **how))
    with pytest.raises(InputError, match="jobs: expected a whole number of at least 1, got 0"):
        sweep(ARM, DESIGN, drawn, samples=3, **how | {"jobs": 0})


ROD = """
summary = "A rigid rod that carries a point mass, in a horizontal plane"
source = "flexctl"
gravity = [0.0, 0.0, 0.0]
[[link]]
joint = "revolute"
length = 0.5
mass_per_length = 1.2
dh = { a = 0.5, alpha = 0.0, d = 0.0 }
[payload]
mass = 0.3
"""
INTEGRAL = """
summary = "Joint PD with integral action"
source = "flexctl"
model = "rod"
method = "joint-pd"
[reference]
kind = "quintic"
from = [0.0]
to = [1.0]
duration = 1.0
[gains]
Gp = [4.0]
Gv = [0.8]
Gi = [2.0]
"""


@pytest.mark.slow
def test_share_and_quantiles_are_those_of_a_known_stability_limit(tmp_path):
    # J s^3 + Gv s^2 + Gp s + Gi is stable for Gi < Gv Gp/J (Routh); J = m L^2/3 + M L^2
    (tmp_path / "rod.toml").write_text(ROD)
    (tmp_path / "integral.toml").write_text(INTEGRAL)
    J, Gp, Gv = 0.6 * 0.25 / 3 + 0.3 * 0.25, 4.0, 0.8
    limit, n = Gv * Gp / J, 200
    vary = {"gains.Gi": f"normal({0.9 * limit!r}, {0.2 * limit!r})"}
    arm, design = tmp_path / "rod.toml", tmp_path / "integral.toml"
    found = sweep(arm, design, vary, metrics="linear", latin=n, seed=3, jobs=1)
    (one,) = summarise(found)
    assert not found.failed
    assert abs(one.stable.count - n * scipy.stats.norm.cdf(0.5)) < 1  # an interval a sample
    Gi = scipy.stats.norm.ppf([0.05, 0.5, 0.95], 0.9 * limit, 0.2 * limit)
    abscissa = [np.roots([J, Gv, Gp, x]).real.max() for x in Gi]
    quantiles = one.quantiles["stability.spectral_abscissa"]
    np.testing.assert_allclose(quantiles, abscissa, atol=0.05 * np.ptp(abscissa))
    assert found.units == ("N m/(rad s)",)
    random = sweep(arm, design, vary, metrics="linear", samples=n, seed=3, jobs=1)
    share = summarise(random)[0].stable
    assert share.low < scipy.stats.norm.cdf(0.5) < share.high


def test_values_that_a_file_refuses_are_not_evaluated_and_count_in_no_share():
    # Gv = 0.01 and 4 are stable; -1 is refused by the file, and no loop is unstable there
    found = sweep(ARM, DESIGN, {"gains.Gv": [-1.0, 0.01, 4.0]}, metrics="linear", jobs=1)
    (summary,) = summarise(found)
    assert found.refused.tolist() == [True, False, False]
    assert (summary.judged, summary.not_evaluated) == (2, 1)
    assert (summary.stable.count, summary.stable.of, summary.failed.count) == (2, 2, 0)
    assert not np.isnan(summary.quantiles["stability.spectral_abscissa"]).any()
    words = sweep_words(found)
    assert "not evaluated at 1 of 3 points" in words
    assert "gains.Gv[1]: expected at least 0, got -1.0" in words
    assert "stable at 2 of 2 evaluated points" in words


def test_a_law_that_fails_is_evaluated_and_not_stable():
    found = sweep(ARM, DESIGN, {"gains.Gp": [10.0, 1e308]}, metrics="linear", jobs=1)
    (summary,) = summarise(found)
    assert (summary.stable.count, summary.stable.of, summary.not_evaluated) == (1, 2, 0)


def test_a_ledger_knows_what_was_refused(tmp_path):
    how = {"metrics": "linear", "jobs": 1, "ledger": tmp_path / "l.db", "truth_basis": TRUTH}
    for resumed in (0, 2):
        found = sweep(ARM, DESIGN, {"gains.Gp": [-1.0, 2.0]}, **how)
        assert (found.resumed, found.refused.tolist()) == (resumed, [True, False])


@pytest.mark.slow
def test_metrics_that_need_no_run_are_those_of_a_full_verdict_without_one(monkeypatch):
    names = [name for name in UNITS if not name.startswith(("tracking.", "residual.", "effort."))]
    points = {"gains.Gv": [3.0, 6.0]}
    whole = sweep("single-link-hub-friction", "hub-pid", points, jobs=1)
    monkeypatch.setattr("flexctl.search.study.evaluate", None)
    some = sweep("single-link-hub-friction", "hub-pid", points, metrics=names, jobs=1)
    for name in names:
        np.testing.assert_array_equal(some.metrics[name], whole.metrics[name], err_msg=name)


def test_a_limit_of_several_joints_is_kept_by_each():
    peaks = np.array([[6.0, 7.0], [6.0, 3.0], [2.0, 3.0]])
    points = SimpleNamespace(
        stable=np.ones(3, dtype=bool), failed={}, n_points=3, metrics={"effort.peak": peaks}
    )
    for text, expected in (("effort.peak>=5", [1, 0, 0]), ("effort.peak<=6.5", [0, 1, 1])):
        points.limits = (read_limit(text),)
        assert Sweep.within.func(points).tolist() == [bool(x) for x in expected]
