"""The public interface: every name has an example that runs, and says in the wheel where it is."""

import doctest
import importlib

import pytest

import flexctl
from flexctl.errors import InputError

LONG = ("TradeOff", "trade_off")  # whole fronts


@pytest.mark.parametrize(
    "name",
    [pytest.param(x, marks=[pytest.mark.slow] if x in LONG else []) for x in flexctl.__all__],
)
def test_every_public_name_has_an_example_that_runs(name):
    subject = getattr(flexctl, name)
    parser, runner = doctest.DocTestParser(), doctest.DocTestRunner(verbose=False)
    test = parser.get_doctest(subject.__doc__ or "", {}, name, None, 0)
    said = []
    runner.run(test, out=said.append)

    assert test.examples, f"{name}: expected an example in its docstring, got none"
    assert not said, "".join(said)


def test_the_table_of_names_is_the_list_of_names():
    assert sorted(flexctl._ROOMS) == sorted(flexctl.__all__)
    for name, room in flexctl._ROOMS.items():
        assert name in vars(importlib.import_module(room))


@pytest.mark.parametrize(
    ("given", "got"),
    [
        ({"modes": 2, "elements": 3}, "modes and elements"),
        ({"modes": 0}, "got 0"),
        ({"elements": 2.5}, "got 2.5"),
        ({"basis": flexctl.BasisChoice(), "modes": 2}, "basis and modes"),
    ],
)
def test_a_discretisation_that_makes_no_sense_is_refused(given, got):
    with pytest.raises(InputError, match=got):
        flexctl.assemble_plant("single-link-hub", **given)


def test_records_are_short_and_have_a_table_for_notebooks():
    controller = flexctl.design_controller("single-link-hub", "hub-pd")
    run = flexctl.simulate(flexctl.close_loop(controller, "single-link-hub"), times=[0.0, 1.0])

    assert len(repr(run)) < 400
    assert repr(run).startswith("Trajectory(t=[0. 1.], q=array (")
    assert run._repr_html_().startswith("<table><caption>Trajectory</caption>")
    assert "<tr><th" in run._repr_html_()
