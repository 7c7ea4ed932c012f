"""Every [expect] figure of the catalogue comes out of the command that a user would type."""

import json
from contextlib import redirect_stdout
from functools import cache
from io import StringIO

import numpy as np
import pytest

from flexctl.model.lookup import list_designs, list_models, load_design, load_model
from flexctl.view import cli
from flexctl.view.to_json import to_json

SLOW = ("rrp-observer", "rrp-composite", "rrp-stiff-decoupling", "subudhi-morris-observer")
SLOW += ("rrp-gentle", "subudhi-morris-decoupling", "subudhi-morris-slow-only", "wu-haug-2")
SLOW += ("two-link-decoupling", "kane-spin-up", "rrp-stiff", "subudhi-morris-lqr", "wu-haug-4")
SLOW += ("rrp-composite-decay",)
SLOW += ("vertical-2r-pd", "vertical-2r-integral", "vertical-2r-decoupling")
SLOW += ("vertical-2r-composite", "vertical-2r-composite-tuned", "rrp-composite-decay-tuned")
SLOW += ("vertical-2r-pid", "vertical-2r-position-feedback", "rrp-pid", "rrp-cascade")
SLOW += ("rrp-position-feedback", "vertical-2r-cascade")
SLOW += ("subudhi-morris-lqr-tuned", "rrp-scheduled")
SLOW += ("vertical-2r-lqg", "vertical-2r-computed-torque", "vertical-2r-shaped")
SLOW += ("vertical-2r-shaped-tuned",)
SLOW += ("rrp-lqg", "rrp-computed-torque", "rrp-shaped", "hub-lqg")
SLOW += ("rrp-composite-spillover", "rrp-observer-spillover", "hub-composite-spillover")
SLOW += ("hub-lqg-spillover", "hub-computed-torque-spillover")
SLOW += ("drives-pd", "drives-pid", "drives-cascade", "drives-computed-torque", "drives-lqg")
SLOW += ("drives-composite",)
SLOW += tuple(f"{arm}-friction-compensation" for arm in ("hub", "rrp", "vertical-2r"))
SLOW += ("hub-pd-spillover", "hub-pid-spillover", "hub-cascade-spillover", "hub-filter-spillover")
SLOW += ("hub-position-feedback-spillover", "hub-state-space-spillover")
MOVED = [e.name for e in list_designs() if load_design(e.name).reference.torque]


def model_figures():
    return [(e.name, key) for e in list_models() for key in load_model(e.name).expect]


def design_figures():
    judged = (e.name for e in list_designs() if e.name not in MOVED)
    named = [(name, key) for name in judged for key in load_design(name).expect]
    slow = pytest.mark.slow  # each compiles for ten to twenty seconds; their like are quick tests
    return [pytest.param(*one, marks=[slow] * (one[0] in SLOW)) for one in named]


@cache
def judged(name):
    """The evaluation of a catalogue design on the truth that its model names."""
    from flexctl.verdict.comparison import compare

    design = load_design(name)
    comparison = compare(load_model(design.model), [design], baseline=False)
    return to_json(comparison)["evaluations"][0]


@cache
def inspected(model, *args):
    """What `flexctl inspect` answers of a model."""
    with redirect_stdout(StringIO()) as said:
        assert cli.run(["inspect", model, "--json", *args]) == 0
    return json.loads(said.getvalue())


def at(table, path):
    for key in path.split("."):
        table = table[int(key)] if isinstance(table, list) else table[key]
    return table


@pytest.mark.parametrize(("model", "figure"), model_figures())
def test_a_model_gives_the_figures_that_its_file_expects(model, figure):
    expected = load_model(model).expect[figure]
    found = at(inspected(model, *expected.args), expected.key)

    assert found[: len(expected.value)] == pytest.approx(expected.value, rel=expected.rtol)


@pytest.mark.parametrize(("design", "figure"), design_figures())
@pytest.mark.slow_but("mohan-saha-*")
def test_a_design_gives_the_figures_that_its_file_expects(design, figure):
    expected = load_design(design).expect[figure]

    assert at(judged(design), expected.key) == pytest.approx(expected.value[0], rel=expected.rtol)


@pytest.mark.slow_but("subudhi-morris-bang-bang-tip-of-link1-at-3-s")
@pytest.mark.parametrize(
    ("design", "figure"), [(name, key) for name in MOVED for key in load_design(name).expect]
)
def test_torques_move_the_arm_as_their_file_expects(design, figure, capsys):
    expected, model = load_design(design).expect[figure], load_design(design).model
    assert cli.run(["simulate", model, design, "--json", *expected.args]) == 0
    found = at(json.loads(capsys.readouterr().out), expected.key)

    assert np.atleast_1d(found) == pytest.approx(np.array(expected.value), rel=expected.rtol)


@pytest.mark.parametrize("entry", [*list_models(), *list_designs()], ids=lambda e: e.name)
def test_every_catalogue_file_expects_something(entry):
    load = load_design if entry.method else load_model

    assert load(entry.name).expect
