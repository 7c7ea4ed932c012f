"""Tables in parts, where columns of numbers do not fit the terminal side by side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich import box
from rich.console import Console, ConsoleOptions, RenderResult
from rich.measure import Measurement
from rich.table import Column, Table

_LABELS = 30  # characters that the first column has at least where it can use them
_BESIDE = 3  # characters between columns, and one more at the end


class WideTable(Table):
    """A table with a rule under its head that, with columns of numbers, breaks no number or word.

    Columns that do not fit follow in further tables, each with the same first column.
    """

    def __init__(self) -> None:
        super().__init__(title_justify="left", box=box.SIMPLE_HEAD)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Render the table whole, or its parts one after the other."""
        sizes = [_size(column, console, options) for column in self.columns]
        width = options.max_width - 1
        fits = sum(size.maximum + _BESIDE for size in sizes) <= width
        if fits or not any(map(_of_numbers, self.columns)):
            yield from super().__rich_console__(console, options)
            return
        beside = max((size.minimum for size in sizes[1:]), default=0) + 2 * _BESIDE
        labels = min(sizes[0].maximum, _LABELS, width - beside)
        sizes[0] = sizes[0].with_minimum(max(sizes[0].minimum, labels))
        title = self.title
        for part in _parts([size.minimum + _BESIDE for size in sizes], width):
            table = Table(title_justify="left", box=box.SIMPLE_HEAD)
            table.title, title = title, None
            columns = [self.columns[k] for k in part]
            numbers = list(map(_of_numbers, columns))
            widths = _widths([sizes[k] for k in part], numbers, width)
            for column, own in zip(columns, widths, strict=True):
                table.add_column(column.header, justify=column.justify, overflow="fold", width=own)
            for cells in zip(*(column.cells for column in columns), strict=True):
                table.add_row(*cells)
            yield table


def _of_numbers(column: Column) -> bool:
    return column.justify == "right"


def _size(column: Column, console: Console, options: ConsoleOptions) -> Measurement:
    """Characters of its longest word, and of its longest line."""
    sizes = [Measurement.get(console, options, cell) for cell in (column.header, *column.cells)]
    return Measurement(max(s.minimum for s in sizes), max(s.maximum for s in sizes))


def _parts(needed: Sequence[int], width: int) -> Iterator[list[int]]:
    """Share out the columns after the first, which every part has, to tables that fit."""
    part, used = [0], needed[0]
    for k in range(1, len(needed)):
        if len(part) > 1 and used + needed[k] > width:
            yield part
            part, used = [0], needed[0]
        part.append(k)
        used += needed[k]
    yield part


def _widths(sizes: Sequence[Measurement], numbers: Sequence[bool], width: int) -> list[int]:
    """Widths between a longest word and a longest line: numbers get what they want first."""
    widths = [size.minimum for size in sizes]
    for right in (True, False):
        own = [k for k, of_numbers in enumerate(numbers) if of_numbers is right]
        while sum(widths) + _BESIDE * len(widths) < width:
            short = [k for k in own if widths[k] < sizes[k].maximum]
            if not short:
                break
            widths[min(short, key=lambda k: widths[k])] += 1
    return widths
