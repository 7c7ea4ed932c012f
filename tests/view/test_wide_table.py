"""Tables that are wider than the terminal."""

import io

import pytest
from rich.console import Console

from flexctl.view.output import literal, plain_table

HEADS = ["1. rrp-observer", "2. rrp-composite", "3. rrp-lqg", "4. rrp-cascade"]
ROWS = [
    ("After the motion",),
    ("  tip error from the rigid arm, largest [mm]", "-0.00809", "4.89", "4.97", "5.4"),
    ("  peak torques [N m, N]", "74.1 / 150 / 53", "72.6 / 152 / 50.2", "-", "0.001"),
]


def printed(width, rows=ROWS, heads=HEADS):
    table = plain_table("A title", "", *heads, rows=rows, numeric=range(1, len(heads) + 1))
    out = io.StringIO()
    Console(file=out, width=width, highlight=False).print(table)
    return out.getvalue()


@pytest.mark.parametrize("width", [40, 60, 80, 100, 140])
def test_every_number_and_name_stays_whole(width):
    text = printed(width)

    assert max(map(len, text.splitlines())) <= width
    words = text.split()
    for row in ROWS:
        for cell in row[1:]:
            assert all(word in words for word in cell.split())
    for head in HEADS:
        assert head.split()[1] in words


def test_what_does_not_fit_follows_with_the_same_first_column():
    text = printed(80)

    assert text.count("A title") == 1
    assert text.count("After the motion") == text.count("peak torques") == 2
    assert text.index("rrp-observer") < text.index("rrp-cascade")


def test_a_table_that_fits_is_one():
    assert printed(140).count("After the motion") == 1


def test_brackets_are_no_markup_in_parts():
    text = printed(30, rows=[("[bold]a[/bold]", "1", "2")], heads=["one [rad]", "another [mm]"])

    assert "[bold]a[/bold]" in text
    assert "[mm]" in text


def test_one_column_of_numbers_that_does_not_fit_is_folded():
    text = printed(20, rows=[("label", "1234567890123456789012")], heads=["one"])

    assert max(map(len, text.splitlines())) <= 20
    assert sum(c.isdigit() for c in text) == 22


def test_words_are_bold_where_they_were():
    table = plain_table("", "", "a", "b", numeric=(1, 2))
    table.add_row(literal("x"), literal("1" * 30, "bold green"), literal("2" * 30))
    out = io.StringIO()
    Console(file=out, width=50, force_terminal=True, color_system="standard").print(table)

    assert "\x1b[1;32m" + "1" * 30 in out.getvalue()


def test_a_single_column_of_numbers_keeps_its_title():
    table = plain_table("A title", "one", rows=[("1" * 60,)], numeric=(0,))
    out = io.StringIO()
    Console(file=out, width=40, highlight=False).print(table)

    assert "A title" in out.getvalue()
