"""Which entries of a controller are free, fixed or tied: gains that are affine in named numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from flexctl import checks
from flexctl.checks import Array
from flexctl.errors import InputError
from flexctl.records import Summary
from flexctl.search.synthesis.structure_input import (
    Bounds,
    are_channels,
    are_rows,
    is_block,
    read_bounds,
    signed,
)


@dataclass(frozen=True, kw_only=True, repr=False)
class ControllerStructure(Summary):
    """A controller whose matrices are affine in free numbers, each with a name and bounds.

    The controller is u = Dk y + Ck xk, xk' = Bk y + Ak xk with k = `order` states, m outputs u and
    p inputs y. Its matrices stand in one gain K = [Dk Ck; Bk Ak].

    Attributes
    ----------
    names
        Of the free numbers x (n,).
    offset, directions
        K = offset + sum x_i directions_i: (m + k, p + k) and (n, m + k, p + k).
    lower, upper
        Bounds of x (n,), infinite where there is none.
    order
        k.
    dt
        Sample time [s] that its numbers hold for; 0: continuous time; None: any.
    extends
        Whether the plant may have more u and y than these, which are not used: of channels that are
        named by their indices.

    Examples
    --------
    Two loops with the same gain, by a table of numbers and names:

    >>> import flexctl
    >>> tied = flexctl.ControllerStructure.table([["k", 0.0], [0.0, "-k"]], bounds={"k": (0, 5)})
    >>> tied.names
    ('k',)
    >>> tied.gain([2.0]).tolist()
    [[2.0, 0.0], [0.0, -2.0]]
    """

    names: tuple[str, ...]
    offset: Array
    directions: Array
    lower: Array
    upper: Array
    order: int
    dt: float | None = None
    extends: bool = False

    def __post_init__(self) -> None:
        """Make arrays of what is given, and check that shapes and bounds fit each other."""
        n, order = len(self.names), checks.whole("order", self.order, least=0)
        offset = checks.finite("offset", self.offset)
        if offset.ndim != 2 or min(offset.shape) <= order:
            raise InputError(f"offset: expected more than {order} rows and columns (the order)")
        if not n:
            raise InputError("structure: expected at least one free number, got none")
        directions = checks.shape("directions", self.directions, (n, *offset.shape))
        arrays = {"offset": offset, "directions": directions}
        for name in ("lower", "upper"):
            try:
                bound = np.asarray(getattr(self, name), dtype=float)
            except (TypeError, ValueError):
                bound = np.full(n, np.nan)
            if bound.shape != (n,) or np.isnan(bound).any():
                raise InputError(f"{name}: expected one bound of each of {n} free numbers")
            arrays[name] = bound
        wrong = arrays["lower"] > arrays["upper"]
        if wrong.any():
            i = int(wrong.argmax())
            expected = f"{arrays['lower'][i]:g} or more of {self.names[i]}"
            raise InputError(f"upper: expected {expected}, got {arrays['upper'][i]:g}")
        for name, value in arrays.items():
            object.__setattr__(self, name, value)

    @classmethod
    def full(cls, outputs: int, inputs: int, order: int = 0) -> ControllerStructure:
        """All entries free, for `outputs` u and `inputs` y: static, or of an order.

        Names are D[1,1], C[1,1], B[1,1], A[1,1] and so on, rows first.
        """
        outputs = checks.whole("outputs", outputs, least=1)
        inputs = checks.whole("inputs", inputs, least=1)
        return cls.pattern(np.ones((outputs, inputs), dtype=bool), order)

    @classmethod
    def pattern(
        cls, mask: Any, order: int = 0, bounds: Bounds | None = None
    ) -> ControllerStructure:
        """Zero feedthrough where the mask (m, p) is False; all else of a dynamic one is free."""
        try:
            free: Array = np.asarray(mask)
        except ValueError:  # rows of several lengths
            free = np.zeros(0)
        if free.dtype != bool or free.ndim != 2 or not free.size:
            raise InputError(f"pattern: expected a matrix of True and False, got {mask!r:.60}")
        order = checks.whole("order", order, least=0)
        m, p = free.shape
        table = [
            [
                _entry_name(i, j, m, p) if i >= m or j >= p or free[i, j] else 0.0
                for j in range(p + order)
            ]
            for i in range(m + order)
        ]
        return cls.table(table, order, bounds)

    @classmethod
    def table(
        cls, entries: Sequence[Sequence[float | str]], order: int = 0, bounds: Bounds | None = None
    ) -> ControllerStructure:
        """Write K = [Dk Ck; Bk Ak] entry by entry: numbers are fixed, names are free.

        A name that stands twice ties the entries; "-k" is the negative of "k".
        """
        order = checks.whole("order", order, least=0)
        if not are_rows(entries):
            raise InputError(f"table: expected rows of one length, got {entries!r:.60}")
        rows = [list(row) for row in entries]
        if len(rows) <= order or len(rows[0]) <= order:
            raise InputError(f"table: expected more than {order} rows and columns (the order)")
        shape = len(rows), len(rows[0])
        offset, parts = np.zeros(shape), dict[str, Array]()
        for i, row in enumerate(rows):
            for j, entry in enumerate(row):
                if isinstance(entry, str):
                    sign, name = signed(f"table[{i + 1}][{j + 1}]", entry)
                    parts.setdefault(name, np.zeros(shape))[i, j] = sign
                else:
                    offset[i, j] = checks.number(f"table[{i + 1}][{j + 1}]", entry)
        return cls._of(parts, offset, order, bounds)

    @classmethod
    def decentralised(
        cls, blocks: Sequence[tuple[Sequence[int], Sequence[int], int]]
    ) -> ControllerStructure:
        """Separate controllers, each of (outputs, inputs, order): indices of u and y from 0.

        All entries of each are free; u and y that no block has are not used.
        """
        expected = "blocks: expected (outputs, inputs, order) of each controller"
        if not isinstance(blocks, Sequence) or not blocks or not all(map(is_block, blocks)):
            raise InputError(f"{expected}, got {blocks!r:.60}")
        m, p = 1 + max(max(one[0]) for one in blocks), 1 + max(max(one[1]) for one in blocks)
        k = sum(block[2] for block in blocks)
        table: list[list[float | str]] = [[0.0] * (p + k) for _ in range(m + k)]
        before = 0
        for outputs, inputs, order in blocks:
            states = range(before, before + order)
            for i in [*outputs, *(m + one for one in states)]:
                for j in [*inputs, *(p + one for one in states)]:
                    table[i][j] = _entry_name(i, j, m, p)
            before += order
        return replace(cls.table(table, k), extends=True)

    @classmethod
    def pid(
        cls,
        channels: Sequence[tuple[int, int]] = ((0, 0),),
        *,
        terms: str = "PID",
        filter_time: float = 0.01,
        sample_time: float | None = None,
        shared: bool = False,
        bounds: Bounds | None = None,
    ) -> ControllerStructure:
        """PID in each channel (output, input): Kp + Ki/s + Kd s/(Tf s + 1), by forward differences.

        Sampled: Kp + Ki T/(z - 1) + Kd/(Tf + T/(z - 1)).

        Parameters
        ----------
        channels
            Indices of u and y from 0, one of each a channel.
        terms
            Some of "PID".
        filter_time, sample_time
            Tf [s] of the derivative, and T [s] where the controller is sampled.
        shared
            The same numbers Kp, Ki, Kd in all channels; else Kp1, Ki1, ..., or Kp, Ki, Kd if there
            is one channel only.
        bounds
            Of numbers by name.
        """
        kinds = str(terms).upper()
        if not kinds or set(kinds) - set("PID") or len(set(kinds)) != len(kinds):
            raise InputError(f"terms: expected some of PID, got {terms!r}")
        if not are_channels(channels):
            raise InputError(
                f"channels: expected pairs of indices, each once, got {channels!r:.60}"
            )
        Tf = checks.positive("filter_time", filter_time)
        T = 1.0 if sample_time is None else checks.positive("sample_time", sample_time)
        sampled = sample_time is not None
        if sampled and "D" in kinds and Tf <= T / 2:  # of the filter xd+ = (1 - T/Tf) xd + ...
            raise InputError(f"filter_time: expected above half of sample_time, got {Tf:g}")
        m, p = 1 + max(u for u, _ in channels), 1 + max(y for _, y in channels)
        each = [kind for kind in "ID" if kind in kinds]
        k = len(each) * len(channels)
        offset, parts = np.zeros((m + k, p + k)), dict[str, Array]()
        for number, (u, y) in enumerate(channels):
            tail = "" if shared or len(channels) == 1 else str(number + 1)

            def part(name: str, tail: str = tail) -> Array:
                return parts.setdefault(name + tail, np.zeros_like(offset))

            if "P" in kinds:
                part("Kp")[u, y] += 1
            for at, kind in enumerate(each):
                state = number * len(each) + at
                row, column = m + state, p + state
                if kind == "I":
                    part("Ki")[u, column] += 1
                    offset[row, y] = T
                    offset[row, column] = 1.0 if sampled else 0.0
                else:  # xd' = (y - xd)/Tf, ud = Kd/Tf (y - xd)
                    part("Kd")[u, y] += 1 / Tf
                    part("Kd")[u, column] -= 1 / Tf
                    offset[row, y] = T / Tf
                    offset[row, column] = (1.0 if sampled else 0.0) - T / Tf
        made = replace(cls._of(parts, offset, k, bounds), extends=True)
        return replace(made, dt=T if sampled else 0.0) if k else made

    @classmethod
    def _of(
        cls, parts: Mapping[str, Array], offset: Array, order: int, bounds: Bounds | None
    ) -> ControllerStructure:
        """Gather directions and bounds by name."""
        names = tuple(parts)
        if not names:
            raise InputError("structure: expected at least one free number, got none")
        low, high = read_bounds(names, bounds)
        return cls(
            names=names,
            offset=offset,
            directions=np.array([parts[name] for name in names]),
            lower=low,
            upper=high,
            order=order,
        )

    def on(self, outputs: int, inputs: int) -> ControllerStructure:
        """Return the same for so many u and y, the additional ones unused, if it `extends`."""
        m, p = (size - self.order for size in self.offset.shape)
        rows, columns = max(outputs - m, 0), max(inputs - p, 0)
        if not self.extends or not (rows or columns):
            return self

        def extended(K: Array) -> Array:
            K = np.insert(K, [m] * rows, 0.0, axis=-2)
            return np.insert(K, [p] * columns, 0.0, axis=-1)

        return replace(self, offset=extended(self.offset), directions=extended(self.directions))

    @property
    def free(self) -> bool:
        """Whether every matrix K is possible: all entries free, apart, and without bounds."""
        rows = self.directions.reshape(len(self.names), -1)
        whole = len(rows) == self.offset.size and np.linalg.matrix_rank(rows) == len(rows)
        return bool(whole and np.isinf(self.lower).all() and np.isinf(self.upper).all())

    def gain(self, x: Any) -> Array:
        """Return K (m + k, p + k) for the free numbers x (n,)."""
        if not isinstance(x, np.ndarray) or x.shape != self.lower.shape:
            x = checks.shape("x", x, self.lower.shape)
        return self.offset + np.tensordot(x, self.directions, 1)

    def chain(self, slopes: Array) -> Array:
        """Return derivatives with respect to x, (s, n), from those to K, (s, m + k, p + k)."""
        return np.tensordot(slopes, self.directions, ([1, 2], [1, 2]))

    def nearest(self, K: Array) -> Array:
        """Return x (n,) whose gain is nearest to K, within the bounds."""
        rows = self.directions.reshape(len(self.names), -1).T
        x = np.linalg.lstsq(rows, (K - self.offset).ravel())[0]
        return np.clip(x, self.lower, self.upper)

    def named(self, x: Any) -> dict[str, float]:
        """Return the free numbers by name."""
        return dict(zip(self.names, map(float, x), strict=True))

    def _facts(self) -> Mapping[str, Any]:
        m, p = (size - self.order for size in self.offset.shape)
        return {"outputs": m, "inputs": p, "order": self.order, "names": ", ".join(self.names)}


def _entry_name(i: int, j: int, m: int, p: int) -> str:
    """Name of an entry of K, such as D[1,2] or A[1,1]."""
    letter = ("D" if i < m else "B") if j < p else ("C" if i < m else "A")
    return f"{letter}[{i + 1 - (m if i >= m else 0)},{j + 1 - (p if j >= p else 0)}]"
