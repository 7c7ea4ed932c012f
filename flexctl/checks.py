"""Checks of numbers and matrices: each returns what it checked, or says what was expected."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from flexctl.errors import InputError

# Docstrings say what an array holds: numpy's types of results are wider than
# float64 (an eigenvalue may be complex), and narrowing them at every line would hide the formulas.
Array = NDArray[Any]
ComplexArray = NDArray[np.complex128]

_ASYMMETRY = 1e-10  # relative to sqrt(|a_ii a_jj|): far above round-off, far below a wrong sign
_INDEFINITE = 1e-12  # of the matrix scaled to a unit diagonal
_CLEAR = 1e-9  # lowest eigenvalue of such a matrix, far beyond round-off


def kind(name: str, value: object, *kinds: type, hint: str = "") -> None:
    """Refuse a value of another type than one of `kinds`; `hint` says how to come by one.

    Raises InputError, such as ``loop: expected ClosedLoop, got Controller``.
    """
    if not isinstance(value, kinds):
        expected = " or ".join(one.__name__ for one in kinds) + (f" ({hint})" if hint else "")
        raise InputError(f"{name}: expected {expected}, got {type(value).__name__}")


def texts(name: str, values: Iterable[object]) -> None:
    """Refuse several, such as the keys of a mapping, of which one is no text."""
    for k, one in enumerate(values):
        kind(f"{name}[{k + 1}]", one, str)


def functions(**given: object) -> None:
    """Refuse arguments, by name, that are neither a function nor None."""
    for name, value in given.items():
        if value is not None and not callable(value):
            raise InputError(f"{name}: expected a function, got {shown(value)}")


def finite(name: str, x: ArrayLike) -> Array:
    """Return `x` as an array of real numbers, any shape.

    Raises InputError if an entry is not a number, or is NaN or infinite.
    """
    try:
        values = np.asarray(x)
    except ValueError as error:  # ragged lists
        raise InputError(f"{name}: expected numbers, got {shown(x)}") from error
    if values.dtype.kind not in "iuf":
        raise InputError(f"{name}: expected real numbers, got {shown(x)}")
    if not np.isfinite(values).all():
        raise InputError(f"{name}: expected finite numbers, got {shown(x)}")
    return np.array(values, dtype=float)


def positive(name: str, x: float) -> float:
    """Return `x` as a finite float above zero, else raise InputError."""
    value = finite(name, x)
    if value.ndim or not value > 0:
        raise InputError(f"{name}: expected one number above 0, got {shown(x)}")
    return float(value)


def number(name: str, x: ArrayLike) -> float:
    """Return `x` as a finite float, else raise InputError."""
    value = finite(name, x)
    if value.ndim:
        raise InputError(f"{name}: expected one number, got {shown(x)}")
    return float(value)


def not_negative(name: str, x: ArrayLike) -> float:
    """Return `x` as a finite float of at least zero, else raise InputError."""
    value = number(name, x)
    if value < 0:
        raise InputError(f"{name}: expected one number of at least 0, got {shown(x)}")
    return value


def whole(name: str, x: object, least: int, most: int | None = None) -> int:
    """Return `x` as a whole number from `least` to `most`, if given, else raise InputError."""
    if isinstance(x, int | np.integer) and not isinstance(x, bool):
        value = int(x)
        if value >= least and (most is None or value <= most):
            return value
    span = f"of at least {least}" if most is None else f"in {least} .. {most:,}"
    raise InputError(f"{name}: expected a whole number {span}, got {shown(x)}")


def shape(name: str, A: ArrayLike, expected: tuple[int, ...]) -> Array:
    """Return `A` as a finite array of shape `expected`, else raise InputError."""
    values = finite(name, A)
    if values.shape != expected:
        raise InputError(f"{name}: expected an array of shape {expected}, got {values.shape}")
    return values


def square(name: str, A: ArrayLike, size: int | None = None) -> Array:
    """Return `A` as a finite (n, n) array, n = `size` if given, else raise InputError."""
    values = finite(name, A)
    if values.ndim != 2 or values.shape[0] != values.shape[1]:
        raise InputError(f"{name}: expected a square matrix, got shape {values.shape}")
    return values if size is None else shape(name, values, (size, size))


def symmetric(name: str, A: ArrayLike, size: int | None = None) -> Array:
    """Return (A + A') / 2, (n, n), where A differs from its transpose by round-off only.

    Raises InputError if an entry differs from its mirror image by more than round-off can explain.
    """
    A = square(name, A, size)
    if (A == A.T).all():
        return A
    d = np.sqrt(np.abs(np.diag(A)))
    r = np.sqrt(np.abs(A).max(axis=1))  # row by row, so that mixed units hide nothing
    round_off = 8 * len(A) * np.finfo(float).eps * np.outer(r, r)
    excess = np.abs(A - A.T) - _ASYMMETRY * np.outer(d, d) - round_off
    i, j = np.unravel_index(excess.argmax(), A.shape)
    if excess[i, j] > 0:
        got = f"[{i}, {j}] = {A[i, j]:.6g} but [{j}, {i}] = {A[j, i]:.6g}"
        raise InputError(f"{name}: expected a symmetric matrix, got {got}")
    return (A + A.T) / 2


def semidefinite(name: str, A: ArrayLike, size: int | None = None) -> Array:
    """Return `A`, (n, n), made exactly symmetric, where x' A x >= 0 for all x.

    Raises InputError if A is not symmetric, or has a negative eigenvalue beyond round-off.
    """
    A = symmetric(name, A, size)
    if _lowest_eigenvalue(_scaled(A)) < -_INDEFINITE * len(A):
        raise _wrong_eigenvalue(name, "semidefinite", A)
    return A


def definite(name: str, A: ArrayLike, size: int | None = None) -> Array:
    """Return `A`, (n, n), made exactly symmetric, where x' A x > 0 for all x but zero.

    Raises InputError if A is not symmetric, is singular to round-off, or has a negative eigenvalue.
    """
    A = symmetric(name, A, size)
    scaled = _scaled(A)
    if clearly_definite(scaled):
        return A
    if not _lowest_eigenvalue(scaled) > np.finfo(float).eps * len(A):
        raise _wrong_eigenvalue(name, "definite", A)
    return A


def clearly_definite(scaled: Array) -> bool:
    """Whether all eigenvalues of a symmetric matrix with unit diagonal, (n, n), are above 1e-9.

    By its Cholesky factor, which takes a third of the time of eigenvalues.
    """
    try:
        np.linalg.cholesky(scaled - _CLEAR * np.eye(len(scaled)))
    except np.linalg.LinAlgError:
        return False
    return True


def _scaled(A: Array) -> Array:
    """Return A with unit diagonal, so that mixed units do not hide a bad sign."""
    if not A.size:
        return A
    diagonal = np.diag(A)
    largest = max(diagonal.max(), np.abs(A).max()) or 1.0
    d = np.sqrt(np.where(diagonal > 0, diagonal, largest))
    return A / np.outer(d, d)


def _lowest_eigenvalue(A: Array) -> float:
    return float(np.linalg.eigvalsh(A)[0]) if A.size else np.inf


def _wrong_eigenvalue(name: str, kind: str, A: Array) -> InputError:
    expected, lowest = f"a positive {kind} matrix", np.linalg.eigvalsh(A)[0]
    return InputError(f"{name}: expected {expected}, got one with eigenvalue {lowest:.3g}")


def shown(x: object) -> str:
    """Return what was given on one line of at most 60 characters."""
    text = " ".join(repr(x).split())
    return text if len(text) <= 60 else text[:57] + "..."
