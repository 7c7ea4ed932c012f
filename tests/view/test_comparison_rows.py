"""The table of a comparison read back: a cell, in the unit of its row, is a figure of the record.

Evaluations are made by hand and no two of their figures are alike, so that a cell says where it was
taken from. A new row needs a line in QUANTITIES.
"""

import copy
import math
import re
from types import SimpleNamespace

import pytest

from flexctl.model.lookup import load_model
from flexctl.view.comparison_rows import _ROWS, metric_rows, ranked, why_unranked

SIZE = {"mm": 1e-3, "m": 1, "mrad": 1e-3, "mrad, mm": 1e-3, "s": 1, "ms": 1e-3, "%": 1e-2, "J": 1}
SIZE |= {"N m": 1, "N m, N": 1, "1/s": 1, "dB": 1, "deg": 1, "Hz": 1, "": 1}
LENGTH, TIME, ANGLE = {"mm", "m"}, {"s", "ms"}, {"mrad", "mrad, mm"}
TORQUE = {"N m", "N m, N"}


def quantity(path, units, better, *, of=None, word=""):
    """Where a row's figure stands, the units it may have, which is best, of a list the entry."""
    keys = path.split(".")
    return SimpleNamespace(keys=keys, units=units, better=better, of=of, word=word, path=path)


QUANTITIES = [
    quantity("residual.tip_error_max", LENGTH, min),
    quantity("residual.settling_time", TIME, min, word="settle"),
    quantity("rest.tip_offset", LENGTH, min),
    quantity("rest.offset", ANGLE, None, word="joint"),
    quantity("rest.holding_torque", TORQUE, None, word="hold"),
    quantity("rest.limit", TORQUE, None, word="limit"),
    quantity("tracking.tip_error_max", LENGTH, min),
    quantity("tracking.tip_error_rms", LENGTH, min, word="rms"),
    quantity("tracking.joint_error_max", ANGLE, None, word="joint"),
    quantity("effort.peak", TORQUE, None, word="peak"),
    quantity("effort.energy", {"J"}, min, word="energy"),
    quantity("effort.saturated_seconds", TIME, None, of=max, word="limit"),
    quantity("stability.spectral_abscissa", {"1/s"}, min),
    quantity("stability.path_spectral_abscissa", {"1/s"}, min, of=max, word="motion"),
    quantity("spillover.spectral_abscissa", {"1/s"}, min, of=max, word="other truth orders"),
    quantity("spillover.path_spectral_abscissa", {"1/s"}, min, of=max, word="motion, truth orders"),
    quantity("stability.min_damping_ratio", {"%"}, max, word="damping"),
    quantity("neglected.scaled_peak", {""}, None, word="neglected"),
    quantity("stability.settles_at_order", {""}, None, word="order"),
    quantity("margins.gain_db", {"dB"}, max, of=min, word="gain"),
    quantity("margins.phase_deg", {"deg"}, max, of=min, word="phase"),
    quantity("margins.delay_seconds", {"ms"}, max, of=min, word="delay"),
    quantity("margins.common_delay_seconds", {"ms"}, max, word="together"),
    quantity("margins.disk", {""}, max, word="disk"),
    quantity("margins.joint_sensitivity_peak", {""}, min, of=max, word="sensitivity peak"),
    quantity("margins.joint_complementary_peak", {""}, min, of=max, word="complementary"),
    quantity("margins.min_sampling_rate", {"Hz"}, min, word="sampling"),
    quantity("stiffness.exact.alpha_upper", {"%"}, max),
    quantity("stiffness.exact.path_alpha_upper", {"%"}, max),
    quantity("stiffness.exact.path_growth", {""}, min, word="growth"),
    quantity("cost.law", {""}, None, word="multiplications"),
]
BY_PATH = {q.path: q for q in QUANTITIES}
ARM = load_model("theodore-ghosal-rrp")  # two joints turn, one slides


def evaluation(name, k):
    """An evaluation of three joints; figures of another k are about k times as large."""
    return {
        "design": name,
        "failed": None,
        "tracking": {
            "joint_error_max": [0.00213 * k, 0.00352 * k, 0.00471 * k],
            "tip_error_max": 0.0567 * k,
            "tip_error_rms": 0.0234 * k,
        },
        "residual": {
            "tip_error_max": 0.00789 * k, "settling_time": 0.812 * k, "tip_error_end": 0.00111 * k,
        },
        "rest": {
            "exists": True, "joint": [0.618 * k, -1.13 * k, 0.927 * k],
            "offset": [0.0181 * k, -0.0292 * k, 0.0133 * k], "tip_offset": 0.0345 * k,
            "holding_torque": [2.05 * k, -1.46 * k, 5.27 * k],
            "limit": [20.3 * k, 12.9 * k, 88.1 * k],
            "holds": True, "falls": False, "elsewhere": None,
        },
        "effort": {
            "peak": [6.11 * k, 4.32 * k, 9.53 * k], "rms": [2.62 * k, 1.71 * k, 3.84 * k],
            "energy": 14.7 * k, "saturated_seconds": [0.141 * k, 0.272 * k, 0.0634 * k],
        },
        "stability": {
            "spectral_abscissa": -1.57 * k, "min_damping_ratio": 0.0643 * k, "stable": True,
            "settles_at_order": 3 + k,
            "path_spectral_abscissa": [-2.21 * k, -0.483 * k, -0.974 * k],
            "path_t": [0.0, 0.53, 1.07],
        },
        "margins": {
            "gain_db": [8.31 * k, 5.14 * k, 7.72 * k], "gain_up_db": [8.31 * k, 9.9 * k, None],
            "gain_down_db": [None, 5.14 * k, 7.72 * k],
            "phase_deg": [41.7 * k, 52.4 * k, 38.6 * k],
            "delay_seconds": [0.00452 * k, 0.00361 * k, 0.00284 * k], "disk": 0.445 * k,
            "common_delay_seconds": 0.00197 * k,
            "disk_frequency": 31.9 * k, "min_sampling_rate": 161.0 * k,
            "joint_sensitivity_peak": [1.43 * k, 1.92 * k, 1.27 * k],
            "joint_complementary_peak": [1.17 * k, 1.38 * k, 1.06 * k],
        },
        "neglected": {"scaled_peak": 0.737 * k, "why": None},
        "stiffness": {
            "exact": {
                "alpha_upper": 0.0951 * k, "alpha_lower": -0.311 * k,
                "path_alpha_upper": 0.0262 * k, "path_t": 0.41 * k,
                "path_growth": 12.3 * k, "path_growth_error": 0.1,
                "mode": "link2", "crossing_frequency": 55.5 * k,
            },
        },
        "spillover": {
            "order": [1, 4, 8], "spectral_abscissa": [-1.91 * k, -1.62 * k, -1.53 * k],
            "path_spectral_abscissa": [None, -0.483 * k, -0.457 * k],
        },
        "cost": {"law_mul": 320 * k, "law_add": 211 * k, "law_other": 17 * k},
    }  # fmt: skip


def recorded(e, q):
    """The record's own figure of a quantity: a number, a list of them, or None."""
    if q.path == "cost.law":
        return [e["cost"]["law_mul"], e["cost"]["law_add"]]
    for key in q.keys:
        e = e[key] if e is not None else None
    if q.of is None or e is None:
        return e
    return q.of([x for x in e if x is not None])


def read(cell, unit):
    """Numbers (in SI units) that a cell shows."""
    return [SIZE[unit] * float(text) for text in cell.text.split(" / ")]


def agrees(row, expected):
    """Whether a row shows these figures, a list or number for each cell, to three digits."""
    for cell, figures in zip(row.cells, expected, strict=True):
        values = figures if isinstance(figures, list) else [figures]
        try:
            numbers = read(cell, row.unit)
        except ValueError:
            return False
        close = [math.isclose(a, b, rel_tol=5e-3) for a, b in zip(numbers, values, strict=False)]
        if len(numbers) != len(values) or not all(close):
            return False
    return True


def rows_of(evaluations):
    """Rows by the path of what they show."""
    rows, found = metric_rows(evaluations, ARM), {}
    for q in QUANTITIES:
        expected = [recorded(e, q) for e in evaluations]
        matching = [row for row in rows if row.unit in q.units and agrees(row, expected)]
        assert len(matching) == 1, f"{q.path}: expected one row, got {len(matching)}"
        found[q.path] = matching[0]
    return found


@pytest.fixture(scope="module")
def trio():
    return [evaluation("one", 1), evaluation("two", 2), evaluation("three", 3)]


@pytest.fixture(scope="module")
def place(trio):
    """Where each quantity stands in the table."""
    by_path, rows = rows_of(trio), metric_rows(trio, ARM)
    return {path: rows.index(row) for path, row in by_path.items()}


def test_every_row_shows_one_quantity_and_every_quantity_has_a_row(trio, place):
    rows = len(metric_rows(trio, ARM))
    assert [place[q.path] for q in QUANTITIES] == list(range(rows))  # in this order


@pytest.mark.parametrize("q", QUANTITIES, ids=lambda q: q.path)
def test_a_row_is_called_what_it_shows(trio, place, q):
    assert q.word in metric_rows(trio, ARM)[place[q.path]].label


@pytest.mark.parametrize("q", QUANTITIES, ids=lambda q: q.path)
def test_the_best_of_a_row_is_marked(trio, place, q):
    cells = metric_rows(trio, ARM)[place[q.path]].cells
    values = [recorded(e, q) for e in trio]
    expected = [q.better is not None and value == q.better(values) for value in values]

    assert [cell.best for cell in cells] == expected


def test_a_peak_that_is_not_known_has_no_largest(trio):
    lost = copy.deepcopy(trio)
    for key in ("joint_sensitivity_peak", "joint_complementary_peak"):
        lost[1]["margins"][key][1] = None  # an infinite one, in JSON
    rows = {row.label: row.cells for row in metric_rows(lost, ARM)}
    for label in ("sensitivity peak", "peak of complementary sensitivity"):
        assert [cell.text == "-" for cell in rows[label]] == [False, True, False]


@pytest.mark.parametrize("q", QUANTITIES, ids=lambda q: q.path)
def test_a_failed_run_is_never_best(trio, place, q):
    best = trio.index(min(trio, key=lambda e: _rank(recorded(e, q), q)))
    lost = copy.deepcopy(trio)
    lost[best]["failed"] = "the run ends at t = 0.1 s"
    cells = metric_rows(lost, ARM)[place[q.path]].cells

    assert not cells[best].best
    left = [e for k, e in enumerate(lost) if k != best]
    second = lost.index(min(left, key=lambda e: _rank(recorded(e, q), q)))
    assert cells[second].best == (q.better is not None)


def _rank(value, q):
    return 0 if q.better is None else -value if q.better is max else value


@pytest.mark.parametrize("q", QUANTITIES, ids=lambda q: q.path)
def test_what_is_not_known_is_not_a_number(trio, place, q):
    gone = copy.deepcopy(trio)
    parent = gone[0] if q.path != "cost.law" else gone[0]["cost"]
    if q.path == "cost.law":
        parent.clear()
    else:
        for key in q.keys[:-1]:
            parent = parent[key]
        parent[q.keys[-1]] = None
    if q.path.startswith("stiffness"):  # null is an infinite margin there, the witness says which
        gone[0]["stiffness"]["exact"] |= {"alpha_lower": None, "path_t": None}
    if q.path == "margins.common_delay_seconds":  # null is an infinite margin there, too
        gone[0]["margins"] = None
    if q.path == "neglected.scaled_peak":  # and here
        gone[0]["neglected"]["why"] = "no equilibrium"
    cell, *others = metric_rows(gone, ARM)[place[q.path]].cells

    assert not re.search(r"\d", cell.text)
    assert cell.text != "no limit"
    assert not cell.best
    assert sum(c.best for c in others) == (q.better is not None)
    gone[0]["failed"] = "the run ends at t = 0.1 s"
    assert set(metric_rows(gone, ARM)[place[q.path]].cells[0].text) <= set("- /")


def test_an_undamped_mode_that_the_design_lacks_has_an_infinite_size(trio, place):
    own = copy.deepcopy(trio)
    own[0]["neglected"] = {"scaled_peak": None, "why": None}
    cells = metric_rows(own, ARM)[place["neglected.scaled_peak"]].cells
    assert cells[0].text == "infinite"
    assert not cells[0].best


@pytest.mark.parametrize(
    "group", ["tracking", "rest", "residual", "effort", "stability", "margins", "neglected"]
)
def test_a_whole_group_may_be_missing(trio, place, group):
    gone = copy.deepcopy(trio)
    gone[0][group] = None
    rows = metric_rows(gone, ARM)
    for path, k in place.items():
        assert bool(re.search(r"\d", rows[k].cells[0].text)) == (path.split(".")[0] != group)


@pytest.mark.parametrize("exact", [None, "gone"])
def test_without_an_exact_stiffness_margin_there_is_no_number(trio, place, exact):
    gone = copy.deepcopy(trio)
    gone[0]["stiffness"] = None if exact == "gone" else {"exact": None}
    rows = metric_rows(gone, ARM)
    for path in ("stiffness.exact.alpha_upper", "stiffness.exact.path_alpha_upper"):
        assert not re.search(r"\d|no limit", rows[place[path]].cells[0].text)


@pytest.mark.parametrize(
    ("path", "key"),
    [("alpha_upper", "alpha_upper"), ("path_alpha_upper", "path_alpha_upper")],
)
def test_a_margin_that_nothing_ends_has_no_limit_and_is_best(trio, place, path, key):
    endless = copy.deepcopy(trio)
    endless[1]["stiffness"]["exact"][key] = None  # infinity, in JSON; the witness is a number
    cells = metric_rows(endless, ARM)[place[f"stiffness.exact.{path}"]].cells

    assert [cell.text == "no limit" for cell in cells] == [False, True, False]
    assert [cell.best for cell in cells] == [False, True, False]


@pytest.mark.parametrize(
    ("path", "witness", "other"),
    [("alpha_upper", "alpha_lower", "path_t"), ("path_alpha_upper", "path_t", "alpha_lower")],
)
def test_each_stiffness_margin_has_its_own_witness(trio, place, path, witness, other):
    for key, known in ((witness, False), (other, True)):
        gone = copy.deepcopy(trio)
        gone[0]["stiffness"]["exact"][key] = None
        text = metric_rows(gone, ARM)[place[f"stiffness.exact.{path}"]].cells[0].text
        assert bool(re.search(r"\d", text)) == known


@pytest.mark.parametrize("key", ["gain_db", "phase_deg", "delay_seconds"])
def test_joints_that_nothing_limits_leave_the_others(trio, place, key):
    free = copy.deepcopy(trio)
    values = free[0]["margins"][key]
    smallest = values.index(min(values))
    values[smallest] = None
    free[1]["margins"][key] = [None] * 3
    row = metric_rows(free, ARM)[place[f"margins.{key}"]]

    left = min(value for value in values if value is not None)
    assert read(row.cells[0], row.unit) == pytest.approx([left], rel=5e-3)
    assert [cell.text for cell in row.cells].index("no limit") == 1
    assert [cell.best for cell in row.cells] == [False, True, False]


def test_a_common_delay_that_nothing_limits_is_best(trio, place):
    free = copy.deepcopy(trio)
    free[1]["margins"]["common_delay_seconds"] = None
    cells = metric_rows(free, ARM)[place["margins.common_delay_seconds"]].cells

    assert [cell.text == "no limit" for cell in cells] == [False, True, False]
    assert [cell.best for cell in cells] == [False, True, False]


@pytest.mark.parametrize(("gain", "text"), [(59.9, "59.9"), (60.0, "no limit"), (301, "no limit")])
def test_a_gain_of_a_thousand_is_no_limit(trio, place, gain, text):
    far = copy.deepcopy(trio)
    far[0]["margins"]["gain_db"] = [gain, None, 350.0]

    assert metric_rows(far, ARM)[place["margins.gain_db"]].cells[0].text == text


def test_a_list_may_have_gaps(trio, place):
    gap = copy.deepcopy(trio)
    gap[0]["effort"]["peak"][1] = None
    text = metric_rows(gap, ARM)[place["effort.peak"]].cells[0].text

    assert text.split(" / ")[1] == "-"
    assert float(text.split(" / ")[2]) == pytest.approx(9.53)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0.0, "0"), (1.2345, "1.23"), (-1.2345, "-1.23"), (12.345, "12.3"), (123.45, "123"),
        (999.4, "999"), (999.5, "1000"), (999.6, "1000"), (1000.4, "1000"), (-12345.6, "-12346"),
        (99999.0, "99999"), (1e5, "1.00e+05"), (-2.5e6, "-2.50e+06"), (0.001, "0.001"),
        (0.0012345, "0.00123"), (0.000999, "9.99e-04"), (-3.21e-7, "-3.21e-07"), (7, "7"),
    ],
)  # fmt: skip
def test_numbers_of_a_handy_size_have_no_exponent(trio, place, value, expected):
    other = copy.deepcopy(trio)
    other[0]["effort"]["energy"] = value

    assert metric_rows(other, ARM)[place["effort.energy"]].cells[0].text == expected


def test_cells_that_print_alike_are_equally_good(trio, place):
    alike = copy.deepcopy(trio)
    for e, energy in zip(alike, (14.7001, 14.7002, 20.0), strict=True):
        e["effort"]["energy"] = energy
    row = metric_rows(alike, ARM)[place["effort.energy"]]
    assert [cell.best for cell in row.cells] == [True, True, False]
    alike[2]["effort"]["energy"] = 14.7003
    row = metric_rows(alike, ARM)[place["effort.energy"]]
    assert not any(cell.best for cell in row.cells)


def test_a_failed_run_is_not_best_where_it_prints_alike(trio, place):
    alike = copy.deepcopy(trio)
    alike[0]["effort"]["energy"], alike[1]["effort"]["energy"] = 14.7001, 14.7002
    alike[0]["failed"] = "the arm falls"
    row = metric_rows(alike, ARM)[place["effort.energy"]]

    assert [cell.best for cell in row.cells] == [False, True, False]


def test_torque_limits_stand_where_a_joint_has_one(trio, place):
    some = copy.deepcopy(trio)
    some[0]["rest"]["limit"] = [None, 12.9, None]
    some[1]["rest"]["limit"] = [None, None, None]
    cells = metric_rows(some, ARM)[place["rest.limit"]].cells

    assert cells[0].text.split(" / ") == ["-", "12.9", "-"]
    assert cells[1].text == "-"


def test_one_pose_without_a_rest_leaves_no_slowest_along_the_motion(trio, place):
    lost = copy.deepcopy(trio)
    lost[0]["stability"]["path_spectral_abscissa"][1] = None
    cell = metric_rows(lost, ARM)[place["stability.path_spectral_abscissa"]].cells[0]

    assert not re.search(r"\d", cell.text)


def test_words_are_never_best(trio, place):
    odd = copy.deepcopy(trio)
    odd[0]["effort"]["energy"] = False
    odd[1]["failed"] = odd[2]["failed"] = "the run ends at t = 0.1 s"

    assert not any(cell.best for cell in metric_rows(odd, ARM)[place["effort.energy"]].cells)


def test_other_truth_orders_may_be_unknown(trio, place):
    none = copy.deepcopy(trio)
    none[0] |= {"stability": None, "spillover": {"order": [], "spectral_abscissa": []}}
    none[1]["spillover"]["spectral_abscissa"] = [-2.0, None, -1.0]
    cells = metric_rows(none, ARM)[place["spillover.spectral_abscissa"]].cells

    assert cells[0].text == "-"
    assert cells[1].text == "no equilibrium on one"
    assert not cells[1].best


def test_a_group_is_named_on_its_first_row_only(trio, place):
    rows = metric_rows(trio, ARM)
    named = [k for k, row in enumerate(rows) if row.group]

    assert place["residual.tip_error_max"] == named[0] == 0
    assert len({rows[k].group for k in named}) == len(named)
    for first, second in [
        ("residual.tip_error_max", "residual.settling_time"),
        ("margins.gain_db", "margins.phase_deg"),
    ]:
        assert rows[place[first]].group
        assert not rows[place[second]].group


NO_MARGIN = dict.fromkeys(("alpha_upper", "alpha_lower", "path_alpha_upper", "path_t"))


@pytest.mark.parametrize(
    ("path", "changes"),
    [
        ("residual.settling_time", {"settling_time": None}),
        ("stability.path_spectral_abscissa", {"path_spectral_abscissa": [None, -0.4, -0.9]}),
        ("stability.settles_at_order", {"settles_at_order": None}),
        ("stiffness.exact.alpha_upper", {"exact": NO_MARGIN}),
        ("stiffness.exact.path_alpha_upper", {"exact": NO_MARGIN}),
    ],
)
def test_what_a_design_has_not_is_said_in_words_where_it_was_looked_for(trio, place, path, changes):
    gone, group = copy.deepcopy(trio), path.split(".")[0]
    gone[0][group] |= changes
    assert re.search("[a-z]", metric_rows(gone, ARM)[place[path]].cells[0].text)
    gone[0][group] = None
    assert metric_rows(gone, ARM)[place[path]].cells[0].text == "-"


@pytest.mark.parametrize(
    ("failed", "stability", "word"),
    [
        ("it falls", {"stable": True}, "failed"), ("it falls", {"stable": False}, "failed"),
        (None, {"stable": False}, "unstable"), (None, {"stable": "marginal"}, "not ranked"),
        (None, None, "not ranked"), ("it falls", None, "failed"),
    ],
)  # fmt: skip
def test_why_a_design_has_no_rank_is_said_in_a_word(failed, stability, word):
    assert why_unranked({"failed": failed, "stability": stability}) == word


def test_the_best_ranked_stands_first_and_the_unranked_last(trio):
    one, two, three = trio
    other = evaluation("four", 4)
    answer = {"ranking": ["three", "one"], "evaluations": [one, two, three, other]}

    assert [e["design"] for e in ranked(answer)] == ["three", "one", "two", "four"]


@pytest.mark.parametrize(
    ("model", "units"),
    [("single-link-hub", ("mrad", "N m")), ("theodore-ghosal-rrp", ("mrad, mm", "N m, N"))],
)
def test_units_are_those_of_the_joints(trio, place, model, units):
    rows = metric_rows(trio, load_model(model))
    paths = "tracking.joint_error_max", "effort.peak"

    assert tuple(rows[place[path]].unit for path in paths) == units


def test_arms_without_torque_limits_have_no_row_of_them(trio):
    free = copy.deepcopy(trio)
    for e in free:
        e["rest"]["limit"] = [None] * len(e["rest"]["limit"])
    labels = [[row.label for row in metric_rows(some, ARM)] for some in (trio, free)]
    assert set(labels[0]) - set(labels[1]) == {"torque limits"}


def test_of_a_design_that_does_not_rest_no_offset_is_shown_but_its_torques(trio, place):
    some = copy.deepcopy(trio)
    some[0]["failed"] = "the actuators cannot hold the arm"
    some[1]["rest"] |= {"tip_offset": 5.6e-17, "offset": [-3e-15, 0.02, None]}
    rows = metric_rows(some, ARM)

    assert [rows[place[f"rest.{key}"]].cells[0].text for key in ("tip_offset", "offset")] == [
        "-"
    ] * 2
    assert rows[place["rest.holding_torque"]].cells[0].text != "-"
    assert rows[place["rest.tip_offset"]].cells[1].text == "0"
    assert rows[place["rest.offset"]].cells[1].text == "0 / 20 / -"


def test_a_growth_that_is_beyond_counting_is_written_as_in_the_sentence(trio, place):
    some = copy.deepcopy(trio)
    for e, growth in zip(some, (999.0, 1e3, 1.03e13), strict=True):
        e["stiffness"]["exact"]["path_growth"] = growth
    cells = metric_rows(some, ARM)[place["stiffness.exact.path_growth"]].cells

    assert [cell.text for cell in cells] == ["999", "above 1000", "above 1000"]
    assert [cell.best for cell in cells] == [True, False, False]


@pytest.mark.parametrize(
    ("sizes", "unit", "texts"),
    [
        ((0.034e-3, 2.5e-7), "um", ["34", "0.25"]),  # none needs an exponent
        ((3.4e-3, 2.5e-7), "mm", ["3.4", "2.50e-04"]),  # one is large
        ((0.34e-3, 2.5e-6), "mm", ["0.34", "0.0025"]),  # none is too small
    ],
)
def test_small_figures_stand_in_a_finer_unit(sizes, unit, texts):
    noise = [{"tip_rms": size, "torque_rms": [0.1, 0.1, 0.1]} for size in sizes]
    verdicts = [dict(evaluation(str(k), k + 1), noise=own) for k, own in enumerate(noise)]
    row = next(row for row in metric_rows(verdicts, ARM) if row.label == "tip, rms")

    assert row.unit == unit
    assert [cell.text for cell in row.cells] == texts


def test_labels_say_from_where_a_tip_error_is_measured():
    labels = [label for rows in _ROWS.values() for label in rows if "tip error" in label]
    assert labels
    assert all("from rest" in label or "from rigid arm" in label for label in labels)
