"""Table 1 of Mohan and Saha as printed, and the operations of our own code."""

import re
from pathlib import Path

import pytest

from examples.papers.mohan_saha import complexity


@pytest.mark.parametrize(
    ("name", "algorithm"),
    [
        ("Mohan & Saha", lambda paper: paper.mohan_saha(8, 2)),
        ("Jain & Rodriguez", lambda paper: paper.jain_rodriguez(8, 2, few=False)),
        ("Cyril", lambda paper: paper.cyril(8, 2)),
    ],
)
def test_the_printed_operations_come_out_of_table_1_for_two_modes(name, algorithm):
    # cut off, not rounded: Cyril's are 13990 1/3 and 12683 1/3
    assert tuple(map(int, algorithm(complexity))) == complexity.PRINTED[name]


def test_the_misprint_of_table_1_does_not_give_the_printed_additions():
    assert complexity.cyril(8, 2, as_printed=True).add == pytest.approx(10675 + 1 / 3)


@pytest.mark.parametrize(("m", "few"), [(7, True), (8, False)])
def test_the_rows_of_jain_and_rodriguez_meet_between_seven_and_eight_modes(m, few):
    rows = {few: complexity.jain_rodriguez(1, m, few=few).mul for few in (True, False)}

    assert min(rows, key=rows.get) is few


@pytest.mark.parametrize("part", ["recursion", "terms"])
@pytest.mark.parametrize("spatial", [False, True], ids=["planar", "spatial"])
@pytest.mark.slow  # takes long
def test_operations_grow_as_the_polynomial_that_the_example_takes(part, spatial):
    n = 6 if spatial else 9

    found = complexity.counted(n, 1, part, spatial=spatial)
    assert found == complexity.polynomial(n, 1, part, spatial=spatial)


@pytest.mark.slow
def test_recursion_needs_fewer_operations_than_cholesky_from_one_link_on():
    found = complexity.main(1)

    assert found["spatial"] == found["planar"] == {"Cholesky": 1}
    assert found["Mohan & Saha"]["Jain & Rodriguez, few modes"] is None


@pytest.mark.slow
def test_the_operations_in_the_findings_are_those_of_the_code():
    findings = Path(__file__).with_name("findings.md").read_text(encoding="utf-8")
    printed = operations(findings[findings.index("Our own counts") :])
    ours = operations(complexity.table())

    assert len(printed) == len(ours)
    for (n, *said), (same_n, *found) in zip(printed, ours, strict=True):
        assert (n, said[0::2]) == (same_n, found[0::2])
        more = [abs(a - b) for a, b in zip(said[1::2], found[1::2], strict=True)]
        # one addition a link is to a sum that cancels to 0 or to 1e-14, as the sine is rounded
        assert max(more) <= n - 1


def operations(text):
    """Rows of the first such table: links, then multiplications and additions by turns."""
    rows = re.findall(r"^\| \d+ \|.* \+ .*$", text, re.MULTILINE)[:5]
    return [[int(digits) for digits in re.findall(r"\d+", row)] for row in rows]
