"""A CasADi function with every entry multiplied out: sums of products with numbers put in.

The form in which computer algebra prints closed equations.  What is not a sum or product of the
inputs is an atom, evaluated beforehand: sines, cosines and reciprocals.  sin^2 + cos^2 is 1.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import casadi as ca
import numpy as np

from flexctl.checks import Array
from flexctl.errors import ComputationError
from flexctl.plant.operations import OPERATION_NAMES, Operations, scalar_instructions

Monomial = tuple[tuple[int, int], ...]
"""Atoms with their powers, ascending."""
Polynomial = Mapping[Monomial, float]
"""Coefficients of monomials."""

_ROUND_OFF = 1e-12  # what is left of a coefficient that cancels, beside its parts
_UNARY = {"sin": np.sin, "cos": np.cos, "inv": np.reciprocal}


@dataclass(frozen=True, kw_only=True)
class Atom:
    """What products are made of: an entry of the inputs (argument its index), or a function."""

    kind: str
    argument: int | tuple[tuple[Monomial, float], ...]


@dataclass(frozen=True, kw_only=True)
class Expansion:
    """Entries (n,) of a function's results as sums of products of atoms."""

    atoms: Sequence[Atom]
    entries: Sequence[Polynomial]

    def at(self, x: Array) -> Array:
        """Evaluate the entries (n,) at the inputs x, all that are not structural zeros."""
        values: list[float] = []
        for atom in self.atoms:  # an argument is made of atoms that came before
            if isinstance(atom.argument, int):
                values.append(float(x[atom.argument]))
            else:
                values.append(float(_UNARY[atom.kind](_value(dict(atom.argument), values))))
        return np.array([_value(entry, values) for entry in self.entries])

    def up_to(self, degree: int, inputs: Iterable[int]) -> Expansion:
        """Leave out products of more than `degree` of these inputs."""
        expected = {Atom(kind="q", argument=index) for index in inputs}
        counted = {k for k, atom in enumerate(self.atoms) if atom in expected}
        entries = [
            {m: c for m, c in entry.items() if sum(n for k, n in m if k in counted) <= degree}
            for entry in self.entries
        ]
        return Expansion(atoms=self.atoms, entries=entries)

    def count(self) -> Operations:
        """Count operations, entry by entry: a power is multiplications, a factor of 1 nothing."""
        mul = sum(_multiplications(m, c) for entry in self.entries for m, c in entry.items())
        add = sum(max(len(entry) - 1, 0) for entry in self.entries)
        used = {k for entry in self.entries for m in entry for k, _ in m}
        kinds = Counter(self.atoms[k].kind for k in sorted(used))
        del kinds["q"]
        return Operations(mul=mul, add=add, other=kinds.total(), kinds=dict(kinds))


def multiply_out(function: ca.Function) -> Expansion:
    """Multiply out every structural entry of a function's results.

    Raises
    ------
    ComputationError
        When an operation is none of + - * / sin cos, or the function has no scalar operations.
    """
    function = scalar_instructions(function)
    sizes = [function.nnz_in(k) for k in range(function.n_in())]
    starts = np.concatenate([[0], np.cumsum(sizes)])
    algebra, values, entries = _Algebra(), {}, []
    for k in range(function.n_instructions()):
        code, out = function.instruction_id(k), function.instruction_output(k)
        if code == ca.OP_INPUT:
            source, entry = function.instruction_input(k)
            values[out[0]] = algebra.atom("q", int(starts[source]) + entry)
        elif code == ca.OP_CONST:
            number = function.instruction_constant(k)
            values[out[0]] = {(): number} if number else {}
        else:
            found = [values[i] for i in function.instruction_input(k)]
            if code == ca.OP_OUTPUT:
                entries.append(found[0])
            else:
                values[out[0]] = algebra.apply(code, *found)
    return Expansion(atoms=tuple(algebra.atoms), entries=entries)


class _Algebra:
    """Polynomials in atoms that are met on the way."""

    def __init__(self) -> None:
        self.atoms: dict[Atom, int] = {}
        self._partner: dict[int, int] = {}  # of a sine its cosine

    def atom(self, kind: str, argument: int | Polynomial) -> Polynomial:
        """Return an input or a function of a polynomial as a polynomial."""
        return {((self._index(kind, argument), 1),): 1.0}

    def _index(self, kind: str, argument: int | Polynomial) -> int:
        key = argument if isinstance(argument, int) else tuple(sorted(argument.items()))
        index = self.atoms.setdefault(Atom(kind=kind, argument=key), len(self.atoms))
        if kind == "sin" and index not in self._partner:
            self._partner[index] = self._index("cos", argument)
        return index

    def apply(self, code: int, a: Polynomial, b: Polynomial | None = None) -> Polynomial:
        """Apply one of CasADi's operations."""
        match code:
            case ca.OP_SQ:
                return self._product(a, a)
            case ca.OP_NEG | ca.OP_TWICE:
                return _scaled(a, -1 if code == ca.OP_NEG else 2)
            case ca.OP_SIN | ca.OP_COS | ca.OP_INV:
                return self._function(OPERATION_NAMES[code], a)
        if b is not None:
            match code:
                case ca.OP_ADD | ca.OP_SUB:
                    return _sum(a, _scaled(b, 1 if code == ca.OP_ADD else -1))
                case ca.OP_MUL:
                    return self._product(a, b)
                case ca.OP_DIV:
                    return self._product(a, self._function("inv", b))
        raise ComputationError(
            f"expected sums, products, sines and cosines to multiply out, "
            f"got {OPERATION_NAMES[code]}"
        )

    def _function(self, kind: str, a: Polynomial) -> Polynomial:
        if set(a) <= {()}:
            number = float(_UNARY[kind](a.get((), 0.0)))
            return {(): number} if number else {}
        return self.atom(kind, a)

    def _product(self, a: Polynomial, b: Polynomial) -> Polynomial:
        return _collected(
            term
            for m, c in a.items()
            for n, d in b.items()
            for term in self._reduced(_joined(m, n), c * d)
        )

    def _reduced(self, m: Monomial, c: float) -> Iterator[tuple[Monomial, float]]:
        """Replace the squares of sines by those of cosines."""
        for k, power in m:
            if power > 1 and k in self._partner:
                rest = tuple((i, n - 2 * (i == k)) for i, n in m if i != k or n > 2)
                yield from self._reduced(rest, c)
                yield from self._reduced(_joined(rest, ((self._partner[k], 2),)), -c)
                return
        yield m, c


def _joined(m: Monomial, n: Monomial) -> Monomial:
    """Product of two monomials."""
    if not (m and n):
        return m or n
    powers = dict(m)
    for k, power in n:
        powers[k] = powers.get(k, 0) + power
    return tuple(sorted(powers.items()))


def _collected(terms: Iterable[tuple[Monomial, float]]) -> Polynomial:
    """Add terms up; what cancels but for round-off is gone."""
    total: dict[Monomial, float] = {}
    size: dict[Monomial, float] = {}
    for m, c in terms:
        total[m] = total.get(m, 0.0) + c
        size[m] = size.get(m, 0.0) + abs(c)
    return {m: c for m, c in total.items() if abs(c) > _ROUND_OFF * size[m]}


def _sum(a: Polynomial, b: Polynomial) -> Polynomial:
    return _collected([*a.items(), *b.items()])


def _scaled(a: Polynomial, factor: float) -> Polynomial:
    return {m: factor * c for m, c in a.items()}


def _multiplications(m: Monomial, coefficient: float) -> int:
    degree = sum(power for _, power in m)
    bare = abs(abs(coefficient) - 1) < _ROUND_OFF
    return max(degree - bare, 0)


def _value(entry: Polynomial, values: Sequence[float]) -> float:
    return sum(c * float(np.prod([values[k] ** n for k, n in m])) for m, c in entry.items())
