"""Random arms with random designs: ten at once, forty with all tests, more by `make battery`."""

import pytest

from tests.battery.checks import check_case
from tests.battery.random_case import random_case

# Sampled late, observed by gauges, sliding, sprung, undamped, with integrals, too weak to hold; the
# ten of the first forty that take least
QUICK = (2, 8, 9, 14, 18, 22, 26, 30, 35, 39)


@pytest.fixture(autouse=True)
def _no_compiler(monkeypatch):
    monkeypatch.setenv("FLEXCTL_CC", "none")  # what is run for a second is not worth compiling


@pytest.mark.parametrize("seed", QUICK)
def test_a_random_arm_holds_what_is_said_of_it(seed, tmp_path):
    assert not check_case(random_case(seed), tmp_path, quick=True).findings


@pytest.mark.slow  # 40 arms, half a minute each: every check, bounds of independent errors too
@pytest.mark.parametrize("seed", range(40))
def test_a_random_arm_holds_all_that_is_said_of_it(seed, tmp_path):
    assert not check_case(random_case(seed), tmp_path).findings


def test_a_seed_gives_the_same_files(tmp_path):
    first, second = (random_case(7).write(tmp_path / name) for name in "ab")

    assert [path.read_text() for path in first] == [path.read_text() for path in second]
