"""Functions of a closed loop for a run, each compiled if there is a compiler."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from pathlib import Path

import casadi as ca

from flexctl.loop import ClosedLoop
from flexctl.plant import compile_functions, source_digest

RUN = ("reference", "law", "dissipation", "deflections")  # needed by every run


_OF_LOOP: Mapping[str, Callable[[ClosedLoop], ca.Function]] = {
    "reference": lambda loop: loop.reference,
    "law": lambda loop: loop.law,
    "law_jacobian": lambda loop: loop.law_jacobian,
}


def build(loop: ClosedLoop, name: str) -> ca.Function:
    """Build a symbolic function of a run, for the compiler or the virtual machine."""
    if name in _OF_LOOP:
        return _OF_LOOP[name](loop)
    return loop.truth.casadi_functions[name]


def content(loop: ClosedLoop, name: str) -> str:
    """Everything that determines a function of a run, as text: the key of the compile cache.

    Law and reference enter by their own content, not by their file; derived functions by theirs and
    by the source code; the truth plant by its data.
    """
    if name == "law_jacobian":
        return f"{loop.law_digest} {source_digest()}"
    digests = {"law": lambda: loop.law_digest, "reference": lambda: loop.reference_digest}
    return digests[name]() if name in digests else loop.truth.content


def library(loop: ClosedLoop, name: str) -> Path | None:
    """Shared library of one function, built or from the cache; None if nothing is compiled."""
    key = f"run {name} {content(loop, name)}"
    return compile_functions(key, lambda: [build(loop, name)])


def load(loop: ClosedLoop, name: str) -> ca.Function:
    """Return a function of a run to call from Python, compiled where a compiler is found."""
    path = library(loop, name)
    return build(loop, name) if path is None else external(name, path)


@functools.cache
def external(name: str, path: Path) -> ca.Function:
    """Return a function of a shared library; opened once."""
    return ca.external(name, str(path))
