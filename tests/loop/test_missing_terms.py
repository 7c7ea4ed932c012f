"""What a loop's numbers leave out at second order stands among their assumptions."""

import pytest

from flexctl.control import design_controller
from flexctl.loop.closed_loop import close_loop
from flexctl.model.record import BasisChoice

TRUTH = BasisChoice(kind="modes", order=2)


def assumptions_of(make, gravity, final, **link):
    arm = make["single"](EI=18.4, **link).model_copy(update={"gravity": gravity})
    design = make["design"]([0.0], [final], "joint-pd", gains={"Gp": 20.0, "Gv": 6.0})
    return close_loop(design_controller(arm, design), arm, TRUTH).assumptions


def test_a_loop_that_ends_upright_without_foreshortening_says_what_is_missing(make):
    said = assumptions_of(make, (-9.81, 0.0, 0.0), 0.0)[-1]
    # a column under 0.54 kg of its own and 0.25 kg at its tip
    share = 9.81 / 18.4 * (0.54 / 7.837 + 0.25 / 2.467)

    assert said.startswith("at the reference's end, foreshortening is left out of link1")
    assert float(said.split("here it is ")[1].split(" %")[0]) == pytest.approx(
        100 * share, rel=0.02
    )


@pytest.mark.parametrize(
    ("gravity", "link"),
    [((-9.81, 0, 0), {"foreshortening": True}), ((0, -9.81, 0), {}), ((0, 0, 0), {})],
)
def test_a_loop_that_misses_nothing_says_nothing(make, gravity, link):
    assert not any("left out" in s for s in assumptions_of(make, gravity, 0.0, **link))
