"""Matrices A, B, C, D and the sampling period Ts of a controller, from CSV, NPZ or .mat files.

Data, never code: arrays of objects are not read. A row of a CSV file begins with the name of its
matrix: ``A,0.9,0.1``; ``Ts,0.001``.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from flexctl.checks import Array
from flexctl.errors import InputError
from flexctl.model.design import Design
from flexctl.model.files import read_csv
from flexctl.model.record import NOTHING, Unquoted
from flexctl.model.refusals import refuse

_SIDES = {
    "A": "states by states",
    "B": "states by entries of measures",
    "C": "joints by states",
    "D": "joints by entries of measures",
}
_READ = (*_SIDES, "Ts")
_SAME = 1e-9  # relative: Ts and sample_time that differ by less are equal
_SS = (
    "an ss object cannot be read: in MATLAB, [A,B,C,D,Ts] = ssdata(sys); "
    "save controller.mat A B C D Ts"
)


@dataclass(frozen=True, kw_only=True)
class Matrices:
    """z' = A z + B e, tau = C z + D e with n_z states, p inputs and m outputs; z+ if sampled.

    A (n_z, n_z), B (n_z, p), C (m, n_z), D (m, p).
    """

    A: Array
    B: Array
    C: Array
    D: Array


def load_matrices(design: Design, n_outputs: int) -> Matrices:
    """Return the matrices of a design of method state-space, from its file or from the design.

    Raises
    ------
    InputError
        With the file and the matrix: one is missing, has another shape, or is not of finite real
        numbers; Ts differs from `sample_time`; the file cannot be read.
    """
    choice = design.state_space
    if choice is None:
        raise refuse(design.label, "state_space", expected="a table", got=NOTHING)
    label, key, path = design.label, "state_space.", design.matrix_file
    if path is None:
        written = ((name, getattr(choice, name)) for name in _SIDES)
        matrices: dict[str, Any] = {name: M for name, M in written if M is not None}
    else:
        label, key, matrices = str(path), "", dict(_read(path))
    period = matrices.pop("Ts", None)
    if period is not None:
        _check_period(label, period, choice.sample_time)
    return _checked(label, key, matrices, len(choice.measures), n_outputs)


def _checked(label: str, key: str, matrices: Mapping[str, Any], p: int, m: int) -> Matrices:
    if "D" not in matrices:
        hint = "" if matrices else _hint(label)
        raise refuse(label, f"{key}D", expected=f"a matrix{hint}", got=NOTHING)
    arrays = {name: _array(label, key + name, value) for name, value in matrices.items()}
    if not any(name in arrays and arrays[name].size for name in "ABC"):
        arrays |= {"A": np.zeros((0, 0)), "B": np.zeros((0, p)), "C": np.zeros((m, 0))}
    for name in "ABC":
        if name not in arrays:
            raise refuse(label, key + name, expected="a matrix, as there are others", got=NOTHING)
    n = len(arrays["A"])
    for name, shape in {"A": (n, n), "B": (n, p), "C": (m, n), "D": (m, p)}.items():
        if arrays[name].shape != shape:
            expected = f"{_size(shape)} ({_SIDES[name]})"
            got = Unquoted(_size(arrays[name].shape))
            raise refuse(label, key + name, expected=expected, got=got)
    return Matrices(**{name: arrays[name] for name in _SIDES})


def _hint(label: object) -> str:
    """How to save an object of MATLAB, of which a .mat file holds no matrices."""
    return f"; {_SS}" if str(label).lower().endswith(".mat") else ""


def _size(shape: tuple[int, ...]) -> str:
    return " x ".join(map(str, shape)) if len(shape) == 2 else f"{len(shape)} dimensions"


def _array(label: str, key: str, value: Any) -> Array:
    """Matrix of finite real numbers; a single number is 1 x 1."""
    dense = value.toarray() if hasattr(value, "toarray") else value  # sparse ones of a .mat file
    try:
        array = np.asarray(dense)
    except ValueError as error:
        raise refuse(label, key, expected="rows of one length", got=Unquoted("others")) from error
    array = array.reshape(1, 1) if array.ndim == 0 else array
    if array.size == 0 and array.ndim < 2:
        array = array.reshape(0, 0)
    if array.dtype.kind not in "iufb":
        hint = _hint(label) if array.dtype.kind in "OV" else ""
        expected, got = f"real numbers{hint}", Unquoted(f"entries of type {array.dtype.name}")
        raise refuse(label, key, expected=expected, got=got)
    if not np.isfinite(array).all():
        index = tuple(int(k) + 1 for k in np.argwhere(~np.isfinite(array))[0])
        row = f"row {index[0]}" if array.ndim == 1 else f"entry {index}"
        raise refuse(label, key, expected="finite numbers", got=Unquoted(f"another at {row}"))
    return array.astype(float)


def _check_period(label: str, value: Any, sample_time: float) -> None:
    """Refuse a sampling period other than the design's; MATLAB has 0 for continuous ones."""
    period = _array(label, "Ts", value)
    if period.size != 1:
        expected = "one number"
        raise refuse(label, "Ts", expected=expected, got=Unquoted(_size(period.shape)))
    Ts = float(period.item())
    if abs(Ts - sample_time) > _SAME * sample_time:
        expected = f"{sample_time:g}, as state_space.sample_time of the design"
        expected += "" if sample_time else " (0 where the design does not have that key)"
        raise refuse(label, "Ts", expected=expected, got=Unquoted(f"{Ts:g}"))


def _read(path: Path) -> Mapping[str, Any]:
    """Read arrays by name from a file, whose ending gives the format."""
    reader = _READERS.get(path.suffix.lower())
    if reader is None:
        expected = f"a file ending in {', '.join(_READERS)}"
        raise InputError(f"{path}: expected {expected}, got {path.suffix or 'no ending'}")
    if reader is not _read_csv and not os.path.isfile(path):
        got = "a folder" if os.path.isdir(path) else "nothing (no such file)"
        raise InputError(f"{path}: expected a file, got {got}")
    arrays = reader(path)
    names = [name for name in arrays if name.isidentifier() and not name.startswith("__")]
    if names and not set(names) & set(_READ):
        expected = f"matrices by the names A, B, C, D (and Ts){_hint(path)}"
        more = f" and {len(names) - 8} more" if len(names) > 8 else ""
        raise InputError(f"{path}: expected {expected}, got {', '.join(names[:8])}{more}")
    return {name: arrays[name] for name in names if name in _READ}


def _read_csv(path: Path) -> Mapping[str, Any]:
    rows: dict[str, list[list[float]]] = {}
    for line, (name, *entries) in read_csv(path):
        key, words = name.strip(), ",".join(entries).rstrip(", ").split(",")
        if key not in _READ:
            expected = "a row that begins with A, B, C, D or Ts"
            raise refuse(path, f"line {line}", expected=expected, got=key)
        try:
            row = [float(word) for word in words]
        except ValueError as error:
            got = Unquoted(",".join(words) or NOTHING)
            raise refuse(path, f"line {line}", expected="numbers", got=got) from error
        if rows.get(key) and len(rows[key][0]) != len(row):
            expected = f"{len(rows[key][0])} numbers, as in the first row of {key}"
            raise refuse(path, f"line {line}", expected=expected, got=Unquoted(str(len(row))))
        rows.setdefault(key, []).append(row)
    return rows


def _read_npz(path: Path) -> Mapping[str, Any]:
    try:
        file = np.load(path, allow_pickle=False)
        if isinstance(file, np.ndarray):
            raise ValueError("one array without a name (numpy.savez names them)")
        with file:
            return {name: file[name] for name in file.files}
    except (OSError, ValueError, EOFError, BadZipFile) as error:
        raise _unreadable(path, "an NPZ file", error) from error


def _read_mat(path: Path) -> Mapping[str, Any]:
    import h5py
    from scipy.io import loadmat

    try:
        return _read_hdf5(path) if h5py.is_hdf5(path) else loadmat(path)
    except Exception as error:  # loadmat raises anything on bytes that are no .mat file
        raise _unreadable(path, "a .mat file", error) from error


def _read_hdf5(path: Path) -> Mapping[str, Any]:
    """Arrays of a .mat file of version 7.3, which is HDF5 and stores them transposed."""
    import h5py

    with h5py.File(path) as file:
        return {name: _from_hdf5(file[name]) if name in _READ else None for name in map(str, file)}


def _from_hdf5(entry: Any) -> Any:
    if not hasattr(entry, "shape"):  # a group: a struct, an object, a sparse matrix
        return np.array(None)
    if "MATLAB_empty" in entry.attrs:
        return np.zeros(tuple(int(k) for k in entry[()]))
    return entry[()].T


def _unreadable(path: Path, expected: str, error: Exception) -> InputError:
    words = " ".join(str(error).split()) or type(error).__name__
    return InputError(f"{path}: expected {expected}, got: {words}")


_READERS: Mapping[str, Callable[[Path], Mapping[str, Any]]] = {
    ".csv": _read_csv,
    ".npz": _read_npz,
    ".mat": _read_mat,
}
