"""Verdicts of loops with other numbers against those of loops assembled with these numbers.

All numbers of the arm are moved at random, with elements, whose shapes depend on none of them.
Verdicts may differ by ten times what a change of the numbers in the last bit does, of which the
largest of a few random ones is taken: the equations are rounded in another order. Figures of runs
may also differ by the tolerance of these: rounding decides in one run of many whether Newton's
method iterates once more, or whether a step is taken.
"""

import numpy as np
import pytest

from flexctl.control import design_controller, design_on
from flexctl.loop.closed_loop import close_around, close_loop
from flexctl.model.lookup import load_design, load_model
from flexctl.model.record import BasisChoice
from flexctl.plant import assemble_plant, nonzero_numbers
from flexctl.plant.parameters import Numbers, change_numbers, pack_numbers
from flexctl.simulation.integrators import Tolerance
from flexctl.verdict import evaluate
from flexctl.view.to_json import to_json
from tests.designs import designs_with_a_loop
from tests.loops import multipliers, pole_distance

OWN, TRUTH = (BasisChoice(kind="elements", order=order) for order in (1, 2))
CHANGES = 8
ROUND_OFF = 1e-13  # of a value itself
TOLERANCE = Tolerance().relative  # of a figure of a run, if that is not below 1 m, rad, N m or J
OF_RUNS = (".tracking.", ".residual.", ".effort.")
FLAT = 1e-7  # of the frequency of a peak: rounding moves it by the root of what it does to the peak
AT_PEAKS = ("disk_frequency", "sensitivity_frequency", "complementary_frequency")
FOLLOWS_A_MODE = ("drives-cascade", "vertical-2r-cascade")
NARROW = 0.01  # their notch is refused on arms whose modes change places along the motion
LEFT_OUT = ("wall_seconds", "energy_residual", "cost", "steps", "poles")  # poles: by themselves


def numbers_of(record, name=""):
    """All numbers of a verdict by their place in its JSON."""
    if isinstance(record, dict):
        entries = record.items()
    elif isinstance(record, list):
        entries = enumerate(record)
    else:
        is_number = isinstance(record, float | int) and not isinstance(record, bool)
        return {name: float(record)} if is_number else {}
    parts = [numbers_of(value, f"{name}.{key}") for key, value in entries if key not in LEFT_OUT]
    return {key: value for part in parts for key, value in part.items()}


def verdict(loop):
    evaluation = evaluate(loop)
    return evaluation.stability.poles, numbers_of(to_json(evaluation))


@pytest.mark.slow
@pytest.mark.parametrize("name", list(designs_with_a_loop()))
def test_a_verdict_at_random_numbers_is_that_of_the_arm_that_has_them(name):
    design, rng = load_design(name), np.random.default_rng(7)
    arm = load_model(design.model)
    keys = nonzero_numbers(arm)
    spread = NARROW if name in FOLLOWS_A_MODE else 0.1
    x = pack_numbers(Numbers.of(arm, {}), keys) * rng.uniform(1 - spread, 1 + spread, len(keys))
    loop = close_loop(design_controller(arm, design, OWN), arm, TRUTH)

    def at(x):
        return verdict(loop.at(dict(zip(keys, x.tolist(), strict=True))))

    changed = change_numbers(Numbers.of(arm, {}), keys, dict(zip(keys, x, strict=True))).arm
    controller = design_on(assemble_plant(changed, OWN), design)
    poles, expected = verdict(close_around(controller, assemble_plant(changed, TRUTH)))
    own_poles, found = at(x)
    bits = [at(np.nextafter(x, x * rng.choice([0.0, 2.0], len(x))))[1] for _ in range(CHANGES)]

    poles, own_poles = (multipliers(x, design.loop.sample_time) for x in (poles, own_poles))
    assert pole_distance(poles, own_poles) < 1e-9
    assert set(found) == set(expected)
    off = {}
    for key, value in expected.items():
        moved = max(abs(one.get(key, value) - found[key]) for one in bits)
        round_off = FLAT if key.endswith(AT_PEAKS) else ROUND_OFF
        allowed = 10 * moved + round_off * abs(value)
        if key.startswith(OF_RUNS):
            allowed += TOLERANCE * max(abs(value), 1.0)
        if abs(found[key] - value) > allowed:
            off[key] = (value, found[key] - value, allowed)
    assert not off
