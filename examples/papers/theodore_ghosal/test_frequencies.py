"""Claims of [TG95]: sections 2.1.1 and 4.2, verdicts and numbers behind them."""

from functools import cache

import pytest

from examples.papers import claims_of
from examples.papers.theodore_ghosal import frequencies, loads

HOLDS = (
    frequencies.equations_9_11,
    frequencies.equations_40_44,
    frequencies.equations_45_46,
    loads.configuration,
    loads.neglecting,
)
DIFFERS = (frequencies.distinct, frequencies.equation_47, loads.inertia_3r, loads.table_look_up)
DEAR = (frequencies.solved_together, loads.root_finding)  # they assemble arms


@cache
def made(claim):
    return claim()


def test_every_claim_is_listed():
    assert {*HOLDS, *DIFFERS, *DEAR} <= {*claims_of("theodore-ghosal")}


@pytest.mark.parametrize("claim", HOLDS)
def test_what_holds(claim):
    assert made(claim).verdict == "holds"


@pytest.mark.parametrize("claim", DIFFERS)
def test_what_differs_says_why(claim):
    assert made(claim).verdict == "differs"
    assert made(claim).why


@pytest.mark.slow
@pytest.mark.parametrize(("claim", "verdict"), [(DEAR[0], "holds"), (DEAR[1], "differs")])
def test_what_assembles_arms(claim, verdict):
    assert made(claim).verdict == verdict


@pytest.mark.parametrize(
    ("claim", "number", "low", "high"),
    [
        # (47): the figures of tests/beam/test_frequency_equation.py, over the roots
        (frequencies.equation_47, "beta_1", 0.0359, 0.0361),
        (frequencies.equation_47, "frequency", 0.0732, 0.0734),
        (frequencies.distinct, "count", 2, 2),
        (frequencies.distinct, "gap", 0, 1e-7),
        # by hand: 5 against 8/3 for bars of unit mass and length
        (loads.inertia_3r, "stretched", 0.875 - 1e-9, 0.875 + 1e-9),
        (loads.inertia_3r, "points", 0, 1e-12),
        (loads.table_look_up, "numbers", 50, 1000),
        (loads.neglecting, "one", 2e-3, 3e-3),
        (loads.neglecting, "turning", 5e-3, 1e-2),
        pytest.param(loads.root_finding, "multiplications", 30, 90, marks=pytest.mark.slow),
        pytest.param(
            frequencies.solved_together, "accelerations", 0, 1e-12, marks=pytest.mark.slow
        ),
    ],
)
def test_the_numbers_behind_a_claim(claim, number, low, high):
    assert low <= made(claim).numbers[number] <= high
