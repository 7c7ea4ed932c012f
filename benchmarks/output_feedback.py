"""Stabilising output feedback: what is reached on published problems and families, and how soon.

    python benchmarks/output_feedback.py [FOLDER]

FOLDER holds further problems as .npz or .mat files with matrices A, B and C.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import scipy.io

import flexctl
from benchmarks.output_feedback_problems import AC15, FAMILIES, PUBLISHED, Problem
from flexctl.errors import DesignError

ORDERS = (0, 1, 2)
PUBLISHED_AC15 = "15.29 (HIFOO), 15.2 (hinfstruct)"


def main() -> None:
    """Print a table of all problems, and the medians."""
    problems = [*PUBLISHED, *FAMILIES, *more(sys.argv[1:])]
    seconds, missed = [], []
    print("problem        n   m   p  order  abscissa [1/s]  certified  spectra  seconds")
    for problem in problems:
        for order in ORDERS:
            started = time.process_time()
            sizes = "".join(f"{size:4d}" for size in (*problem.B.shape, len(problem.C)))
            row = f"{problem.name:12s}{sizes}  {order:5d}"
            try:
                found = flexctl.stabilise(problem.A, problem.B, problem.C, order)
            except DesignError as error:
                taken = time.process_time() - started
                missed.append((problem.name, order, str(error)))
                print(f"{row}  {'not reached':>14s}{'':20s}  {taken:7.2f}")
            else:
                taken = time.process_time() - started
                rest = f"{found.certified!s:>9s}  {found.evaluations:7d}  {taken:7.2f}"
                print(f"{row}  {found.spectral_abscissa:14.4g}  {rest}")
            seconds.append(taken)
    print(f"\nmedian {np.median(seconds):.3f} s, longest {max(seconds):.2f} s of processor time")
    for name, order, why in missed:
        print(f"not reached: {name}, order {order}: {why}")
    static_hinf()


def more(folders: list[str]) -> Iterator[Problem]:
    """Read the problems of a folder."""
    for path in (one for folder in folders for one in sorted(Path(folder).iterdir())):
        if path.suffix in {".npz", ".mat"}:
            data = np.load(path) if path.suffix == ".npz" else scipy.io.loadmat(path)
            parts = {key: np.asarray(data[key], dtype=float) for key in "ABC"}
            yield Problem(name=path.stem, source=str(path), **parts)


def static_hinf() -> None:
    """Print the H-infinity norm of AC15 with a static gain beside what others found."""
    started = time.process_time()
    found = flexctl.synthesise(ac15_plant(), 0, nmeas=3, ncon=2)
    taken = time.process_time() - started
    print(f"\nAC15, static, H-infinity: {found.norm:.4f} in {taken:.1f} s; {PUBLISHED_AC15}")


def ac15_plant() -> object:
    """AC15 as a generalised plant: w drives all states, z = (x, u)."""
    import control

    D = np.zeros((9, 6))
    D[4:6, 4:6] = np.eye(2)
    outputs = np.vstack([np.eye(4), np.zeros((2, 4)), AC15.C])
    return control.ss(AC15.A, np.hstack([np.eye(4), AC15.B]), outputs, D)


if __name__ == "__main__":
    main()
