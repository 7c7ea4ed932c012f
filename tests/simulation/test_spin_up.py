"""A beam that is spun up: centrifugal stiffening in a run, against published figures."""

from functools import cache

import numpy as np
import pytest

from flexctl.control import design_controller
from flexctl.errors import RunError
from flexctl.loop.closed_loop import close_around
from flexctl.model.lookup import load_design, load_model
from flexctl.model.record import BasisChoice
from flexctl.model.settings import with_options
from flexctl.simulation.simulation import simulate

# design: largest tip deflection against the turn [m] and when [s], at 6, 2 and 4 rad/s
FIGURES = {
    "kane-spin-up": (-0.574, 6.76),  # [SimoVuQuoc86], [Kane87]
    "wu-haug-2": (-0.280, 7.04),
    "wu-haug-4": (-0.534, 6.76),
}


@pytest.fixture(scope="module")
def run():
    """run(design, order): the spin-up with truth and design plant of so many modes."""

    @cache
    def build(name, order=3, foreshortening=True):
        design = load_design(name)
        arm = with_options(load_model(design.model), foreshortening=foreshortening, damping=None)
        controller = design_controller(arm, design, BasisChoice(order=order))
        return simulate(close_around(controller, controller.plant))

    return build


@pytest.mark.slow
@pytest.mark.parametrize("name", FIGURES)
def test_the_tip_lags_as_published_while_it_speeds_up(run, name):
    motion = run(name)
    deflection, (lowest, at) = motion.deflection["link1.y"], FIGURES[name]

    assert deflection.min() == pytest.approx(lowest, rel=0.01)
    assert motion.t[deflection.argmin()] == pytest.approx(at, abs=0.05)


@pytest.mark.slow_but("wu-haug-4", "wu-haug-2")
@pytest.mark.parametrize("name", FIGURES)
def test_the_joint_follows_its_profile_exactly(run, name):
    motion = run(name)

    assert np.abs(motion.joint_error).max() < 1e-8
    assert motion.v[0, -1] == pytest.approx(load_design(name).reference.rate[0], abs=1e-8)


def test_the_tip_hardly_swings_once_the_beam_turns_steadily(run):
    motion = run("kane-spin-up")

    assert np.abs(motion.deflection["link1.y"][motion.t > 15]).max() < 5e-3


@pytest.mark.slow
def test_three_modes_are_enough(run):
    lowest = [run("kane-spin-up", order).deflection["link1.y"].min() for order in (3, 5)]

    assert lowest[0] == pytest.approx(lowest[1], rel=2e-4)


def test_without_foreshortening_the_run_ends_in_words(run):
    # beyond its first clamped frequency, 3.80 rad/s, a beam that does not shorten has no stiffness
    with pytest.raises(RunError, match="link1") as caught:
        run("kane-spin-up", foreshortening=False)

    assert caught.value.time < 10
