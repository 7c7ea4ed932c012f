"""Loci that are followed against those that are proven: the catalogue, and random loops."""

import pytest

from flexctl.errors import FlexctlError, RunError
from flexctl.loci import eigenvalue_loci
from flexctl.model.lookup import list_designs, load_design
from tests.battery.random_case import random_case
from tests.loci.agreement import assert_same

# proofs of these take from half an hour to hours, that of drives-composite also 20 GB of memory
_ENDLESS = ("rrp-observer", "rrp-observer-spillover", "rrp-lqg", "drives-lqg", "drives-composite")


def _designs():
    designs = [load_design(entry.name) for entry in list_designs()]
    return [one for one in designs if not one.open_loop and one.name not in _ENDLESS]


def _assert_agreement(arm, design, **how):
    followed, proven = (eigenvalue_loci(arm, design, proven=way, **how) for way in (False, True))
    assert not proven.loci.unproven
    period = load_design(design).loop.sample_time or None
    assert_same(followed.loci, proven.loci, period)
    if proven.frozen is not None:
        assert_same(followed.frozen, proven.frozen, period)


@pytest.mark.slow
@pytest.mark.parametrize("design", _designs(), ids=lambda one: one.name)
def test_catalogue_loci_agree_along_the_motion(design):
    if design.reference.duration == 0:
        pytest.skip("a set point has no motion")
    try:
        _assert_agreement(design.model, design)
    except RunError:  # some designs fail on purpose
        _assert_agreement(design.model, design, motion="rest")


SEEDS = [*range(3), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(3, 200))]


@pytest.mark.slow_but("2")
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.usefixtures("no_compiler")
def test_loci_of_random_loops_agree(seed, tmp_path):
    arm, design = random_case(seed).write(tmp_path)
    try:
        _assert_agreement(arm, design, motion="rest", points=21)
    except FlexctlError as error:
        pytest.skip(f"no loci: {error}")
