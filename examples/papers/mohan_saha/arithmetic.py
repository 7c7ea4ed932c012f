"""A function's own instructions carried out in any arithmetic: single precision, fifty digits."""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np

from flexctl.errors import ComputationError, InputError
from flexctl.plant.operations import OPERATION_NAMES, scalar_instructions

Operation = Callable[..., Any]

_OPERATORS: dict[int, Operation] = {
    ca.OP_ASSIGN: lambda x: x,
    ca.OP_ADD: operator.add,
    ca.OP_SUB: operator.sub,
    ca.OP_MUL: operator.mul,
    ca.OP_DIV: operator.truediv,
    ca.OP_NEG: operator.neg,
    ca.OP_SQ: lambda x: x * x,
    ca.OP_TWICE: lambda x: x + x,
    ca.OP_INV: lambda x: 1 / x,
    ca.OP_POW: operator.pow,
    ca.OP_CONSTPOW: operator.pow,
    ca.OP_FABS: abs,
    ca.OP_LT: operator.lt,
    ca.OP_LE: operator.le,
    ca.OP_EQ: operator.eq,
    ca.OP_NE: operator.ne,
    ca.OP_NOT: operator.not_,
    ca.OP_AND: lambda x, y: x and y,
    ca.OP_OR: lambda x, y: x or y,
    ca.OP_IF_ELSE_ZERO: lambda x, y: y if x else 0 * y,
    ca.OP_FMIN: min,
    ca.OP_FMAX: max,
}
# functions that math, numpy and mpmath know by the name that CasADi gives them
_FUNCTIONS = (
    {ca.OP_SQRT, ca.OP_EXP, ca.OP_LOG, ca.OP_SIN, ca.OP_COS, ca.OP_TAN, ca.OP_ASIN, ca.OP_ACOS}
    | {ca.OP_ATAN, ca.OP_ATAN2, ca.OP_SINH, ca.OP_COSH, ca.OP_TANH}
)  # fmt: skip


class Instructions:
    """The instructions of a function, read once, to be carried out as often as wanted."""

    def __init__(self, function: ca.Function) -> None:
        """Read the scalar instructions; ComputationError where the function has none."""
        self.function = scalar_instructions(function)

    @cached_property
    def _steps(self) -> list[tuple[int, list[int], list[int], float]]:
        """Code, operands, targets and constant of every instruction."""
        f = self.function
        steps = []
        for k in range(f.n_instructions()):
            code = f.instruction_id(k)
            constant = f.instruction_constant(k) if code == ca.OP_CONST else 0.0
            steps.append((code, f.instruction_input(k), f.instruction_output(k), constant))
        return steps

    def evaluate_in(self, arguments: Sequence[Any], number: Callable[[float], Any]) -> Any:
        """Carry the instructions out: see `evaluate_in` of this module."""
        f = self.function
        if len(arguments) != f.n_in():
            raise InputError(f"{f.name()}: expected {f.n_in()} arguments, got {len(arguments)}")
        given = [_nonzeros(f, i, argument, number) for i, argument in enumerate(arguments)]
        results = [[number(0.0)] * f.nnz_out(i) for i in range(f.n_out())]
        work: list[Any] = [None] * f.sz_w()
        operations = _operations({step[0] for step in self._steps}, number)
        for code, source, target, constant in self._steps:
            if code == ca.OP_INPUT:
                work[target[0]] = given[source[0]][source[1]]
            elif code == ca.OP_CONST:
                work[target[0]] = number(constant)
            elif code == ca.OP_OUTPUT:
                results[target[0]][target[1]] = work[source[0]]
            else:
                work[target[0]] = operations[code](*[work[i] for i in source])
        return tuple(_dense(f.sparsity_out(i), r, number) for i, r in enumerate(results))


def evaluate_in(
    function: ca.Function, arguments: Sequence[Any], number: Callable[[float], Any]
) -> tuple[Any, ...]:
    """Evaluate a function with every constant, operand and result in another arithmetic.

    Parameters
    ----------
    function
        Any function that can be written out in scalar operations.
    arguments
        One array per input, of the input's shape or, for a column, (k,).
    number
        The type of number, such as ``numpy.float32``, ``mpmath.mpf`` or ``float``; its module
        has the elementary functions.

    Returns
    -------
    tuple of arrays
        One per output, a column as (k,), of the type's own dtype or of objects.

    Raises
    ------
    InputError
        When the arguments do not fit the function.
    ComputationError
        When the function holds an operation that is not known here.
    """
    return Instructions(function).evaluate_in(arguments, number)


def _operations(codes: set[int], number: Callable[[float], Any]) -> dict[int, Operation]:
    """Find the operations behind the codes, elementary functions in the number's own module."""
    module = number.__module__.partition(".")[0]
    library = sys.modules["math" if module == "builtins" else module]
    free = {ca.OP_INPUT, ca.OP_OUTPUT, ca.OP_CONST}
    unknown = codes - free - set(_OPERATORS) - _FUNCTIONS
    if unknown:
        names = ", ".join(OPERATION_NAMES[code] for code in sorted(unknown))
        raise ComputationError(
            f"expected operations that have a form in any arithmetic, got {names}"
        )
    functions = {code: getattr(library, OPERATION_NAMES[code]) for code in codes & _FUNCTIONS}
    return {**_OPERATORS, **functions}


def _nonzeros(f: ca.Function, i: int, argument: Any, number: Callable[[float], Any]) -> list[Any]:
    """Return the entries of an argument that the function reads, converted."""
    values, shape = np.asarray(argument), f.size_in(i)
    if values.shape not in {shape, shape[:1] if shape[1] == 1 else shape}:
        raise InputError(f"{f.name()}.{f.name_in(i)}: expected shape {shape}, got {values.shape}")
    flat = values.ravel(order="F")
    return [number(flat[k]) for k in f.sparsity_in(i).find()]


def _dense(sparsity: ca.Sparsity, nonzeros: list[Any], number: Callable[[float], Any]) -> Any:
    entries = [number(0.0)] * sparsity.numel()
    for place, value in zip(sparsity.find(), nonzeros, strict=True):
        entries[place] = value
    shape = sparsity.shape if sparsity.size2() != 1 else (sparsity.size1(),)
    return np.array(entries).reshape(shape, order="F")
