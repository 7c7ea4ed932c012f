"""Tables of the terminal."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rich import box
from rich.table import Table
from rich.text import Text


def plain_table(title: str, *columns: str, numeric: Sequence[int] = ()) -> Table:
    """Make a table with a rule under its head; columns whose index is in `numeric` align right."""
    table = Table(title=Text(title, style="bold"), title_justify="left", box=box.SIMPLE_HEAD)
    for i, column in enumerate(columns):
        table.add_column(Text(column), justify="right" if i in numeric else "left", overflow="fold")
    return table


def fact_table(title: str) -> Table:
    """Make a table without head: what, value, unit."""
    table = plain_table(title, "", "", "")
    table.show_header = False
    return table


def literal(text: str, style: str = "") -> Text:
    """Return a text whose square brackets are no markup."""
    return Text(text, style=style)


def number(value: float | None, digits: int = 4) -> str:
    """Write a number with so many digits; a dash where there is none."""
    if value is None or math.isnan(value):
        return "-"
    return f"{value + 0.0:.{digits}g}"  # no minus sign before zero


def shortened(words: Sequence[str], most: int = 10) -> str:
    """Join words; of too many the first ones and the last."""
    if len(words) > most:
        words = [*words[: most - 1], "...", words[-1]]
    return ", ".join(words)


def numbers(values: Sequence[float | None], digits: int = 4) -> str:
    """Write several numbers in a row."""
    return "  ".join(number(value, digits) for value in values)
