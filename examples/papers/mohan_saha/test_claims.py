"""Claims of Mohan and Saha: verdicts and the numbers behind them."""

from functools import cache

import pytest

from examples.papers.mohan_saha import claims

QUICK = {
    claims.table_1: "holds",
    claims.fewest_operations: "differs",
    claims.linear_in_links: "holds",
    claims.forced_motion: "holds",
}
SLOW = {
    claims.cholesky_fails: "differs",
    claims.only_cholesky_grows: "differs",
    claims.more_stable: "holds",
}


@cache
def made(claim):
    return claim()


def test_every_claim_is_tested():
    assert {*QUICK, *SLOW} == {*claims.CLAIMS}


@pytest.mark.slow_but("table_1-holds", "fewest_operations-differs", "linear_in_links-holds")
@pytest.mark.parametrize(
    ("claim", "verdict"),
    [
        *QUICK.items(),
        *(pytest.param(*case, marks=pytest.mark.slow) for case in SLOW.items()),
    ],
)
def test_a_claim_has_its_verdict_and_says_why(claim, verdict):
    assert made(claim).verdict == verdict
    assert verdict == "holds" or made(claim).why


@pytest.mark.parametrize(
    ("claim", "number", "low", "high"),
    [
        (claims.table_1, "as_printed", 10675, 10676),
        (claims.table_1, "Jain & Rodriguez, mul", 10568, 10568),
        # findings.md: 122 products and 108 sums of a further link
        (claims.linear_in_links, "step", 230, 230),
        (claims.linear_in_links, "bend", 0, 0),
        (claims.fewest_operations, "cyril_from", 6, 6),
        (claims.fewest_operations, "jain_rodriguez_up_to", 2, 2),
        (claims.forced_motion, "last", 4.434e-3, 4.436e-3),
        (claims.forced_motion, "largest", 0.0349, 0.0351),
        pytest.param(claims.cholesky_fails, "gap", 0, 1e-12, marks=pytest.mark.slow),
        pytest.param(
            claims.only_cholesky_grows, "ratio", 1 - 1e-6, 1 + 1e-6, marks=pytest.mark.slow
        ),
        pytest.param(claims.only_cholesky_grows, "stable", 0.6, 0.7, marks=pytest.mark.slow),
        pytest.param(claims.only_cholesky_grows, "recursive", 100, 110, marks=pytest.mark.slow),
        pytest.param(claims.more_stable, "double", 30, 1e4, marks=pytest.mark.slow),
        pytest.param(claims.more_stable, "single", 100, 1e4, marks=pytest.mark.slow),
    ],
)
def test_the_numbers_behind_a_claim(claim, number, low, high):
    assert low <= made(claim).numbers[number] <= high
