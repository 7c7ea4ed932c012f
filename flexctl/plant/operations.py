"""Cost of a CasADi function: its operations, counted from its instructions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import casadi as ca

from flexctl.errors import ComputationError

OPERATION_NAMES = {
    getattr(ca, name): name.removeprefix("OP_").lower()
    for name in dir(ca)
    if name.startswith("OP_")
}
_PRODUCTS = {ca.OP_MUL, ca.OP_SQ}
_SUMS = {ca.OP_ADD, ca.OP_SUB, ca.OP_TWICE}
_FREE = {ca.OP_INPUT, ca.OP_OUTPUT, ca.OP_CONST, ca.OP_PARAMETER, ca.OP_ASSIGN}


@dataclass(frozen=True, kw_only=True)
class Operations:
    """Operations of one evaluation.

    Attributes
    ----------
    mul, add, other
        Multiplications (squares too), additions (subtractions and doublings too), all others.
    kinds
        The others by kind, such as ``{"sin": 3, "cos": 3, "div": 2, "neg": 5}``.
    """

    mul: int
    add: int
    other: int
    kinds: Mapping[str, int]

    def __post_init__(self) -> None:
        if sum(self.kinds.values()) != self.other:
            raise ComputationError(f"{self.other} other operations, by kind {dict(self.kinds)}")


def count_operations(function: ca.Function) -> Operations:
    """Count the operations of one evaluation of a function.

    Inputs, outputs, constants and assignments cost nothing.  A multiplication by a constant is a
    multiplication; one by 1 is not in the graph, and one by -1 is a negation, which counts under
    `other`.

    Raises
    ------
    ComputationError
        When the function cannot be written out in scalar operations: see `scalar_instructions`.
    """
    function = scalar_instructions(function)
    return _operations(
        Counter(function.instruction_id(k) for k in range(function.n_instructions())), function
    )


def count_written_out(function: ca.Function) -> Operations:
    """Count the operations when every entry of the results is written out separately.

    Nothing is shared between entries or within one: a subexpression that is used k times is
    evaluated k times.  This is the size of the function's tree, where `count_operations` gives
    that of its graph; it may be larger by any power of ten.

    Raises
    ------
    ComputationError
        As `count_operations`.
    """
    function = scalar_instructions(function)
    trees: dict[int, Counter[int]] = {}
    total: Counter[int] = Counter()
    for k in range(function.n_instructions()):
        code, out = function.instruction_id(k), function.instruction_output(k)
        tree = Counter({code: 1})
        if code != ca.OP_INPUT:  # its arguments are positions, not results
            for i in function.instruction_input(k):
                tree.update(trees[i])
        if code == ca.OP_OUTPUT:
            total.update(tree)
        else:
            trees[out[0]] = tree
    return _operations(total, function)


def lower_triangle(function: ca.Function) -> ca.Function:
    """Return a function that gives each entry of a symmetric matrix (n, n) once.

    They are those of the lower triangle, row by row, (n (n + 1)/2, 1).
    """
    function = scalar_instructions(function)
    symbols = function.sx_in()
    matrix = function.call(symbols)[0]
    entries = [matrix[i, j] for i in range(matrix.shape[0]) for j in range(i + 1)]
    return ca.Function(function.name(), symbols, [ca.vertcat(*entries)])


def _operations(codes: Counter[int], function: ca.Function) -> Operations:
    """Sort operations by kind."""
    if ca.OP_CALL in codes:
        raise ComputationError(f"{function.name()} calls functions whose operations it hides")
    others = set(codes) - _PRODUCTS - _SUMS - _FREE
    kinds = {OPERATION_NAMES[code]: codes[code] for code in sorted(others)}
    return Operations(
        mul=sum(codes[code] for code in _PRODUCTS),
        add=sum(codes[code] for code in _SUMS),
        other=sum(kinds.values()),
        kinds=kinds,
    )


def scalar_instructions(function: ca.Function) -> ca.Function:
    """Return a function written out in scalar operations; unchanged if it already is.

    Raises ComputationError when a part has no such form, such as a solver or compiled code that it
    calls.
    """
    if function.is_a("SXFunction"):
        return function
    try:
        return function.expand()
    except RuntimeError as error:
        raise ComputationError(
            f"{function.name()} cannot be written out in scalar operations, as it calls "
            f"something that has none: {str(error).strip().splitlines()[-1]}"
        ) from error
