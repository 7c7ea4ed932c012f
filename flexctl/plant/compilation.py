"""CasADi functions as machine code, built once and cached by content.

With a C compiler the functions run compiled; without one the CasADi virtual machine runs the same
graphs. FLEXCTL_CC names the compiler ("none" for the virtual machine), FLEXCTL_CACHE the folder.
"""

from __future__ import annotations

import functools
import hashlib
import os.path
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path

import casadi as ca
import numpy as np

from flexctl.checks import Array
from flexctl.errors import InputError
from flexctl.model import read_sealed, write_sealed
from flexctl.plant.library_cache import (
    build_ahead,
    cache_folder,
    cached_library,
    find_compiler,
    why_not_compiled,
)


def backend(*, interpreted: bool = False) -> str:
    """Describe how functions are evaluated."""
    if interpreted:
        return "CasADi virtual machine (not compiled: not worth it for what is asked of this plant)"
    if why := why_not_compiled():
        return f"CasADi virtual machine ({why}: slower, same results)"
    return f"compiled C ({os.path.basename(find_compiler() or '')})"


def compile_functions(content: str, build: Callable[[], Sequence[ca.Function]]) -> Path | None:
    """Compile functions into a shared library, or find them in the cache.

    Parameters
    ----------
    content
        Everything that determines the functions, as text: see `cached_library`.
    build
        Builds the functions; called only when the cache has no library.

    Returns
    -------
    Path or None
        The shared library; None if nothing is compiled.
    """
    return cached_library(content, functools.partial(_generate, build))


Wanted = tuple[str, Callable[[], Sequence[ca.Function]]]
"""Arguments of `compile_functions`."""


def compile_ahead(wanted: Iterable[Wanted]) -> None:
    """Compile what `compile_functions` will be asked for, side by side; see `build_ahead`."""
    build_ahead([(content, functools.partial(_generate, build)) for content, build in wanted])


def _generate(build: Callable[[], Sequence[ca.Function]], folder: Path) -> Path:
    """Write the C source of functions into a folder."""
    generator = ca.CodeGenerator("functions", {"with_header": False})
    for function in build():
        generator.add(function)
    source = folder / "functions.c"
    source.write_text(generator.dump())  # CasADi itself does not notice a full disk
    return source


def cached_function(content: str, make: Callable[[], ca.Function]) -> ca.Function:
    """Return a function in CasADi's own form: from the cache, or made and kept there.

    To write down the equations of an arm takes a hundred times as long as to read them. `content`
    is everything that determines the function, as text. Where the cache cannot be used, the
    function is made.
    """
    key = hashlib.sha256(f"{ca.CasadiMeta.version()} {content}".encode()).hexdigest()[:32]
    try:
        kept = cache_folder() / f"{key}.casadi"
        return ca.Function.deserialize(read_sealed(kept).decode())
    except (OSError, ValueError, RuntimeError):  # missing, truncated or foreign
        function = make()
    try:
        cache_folder().mkdir(parents=True, exist_ok=True)
        write_sealed(cache_folder() / f"{key}.casadi", function.serialize().encode())
    except OSError:  # then it is made again next time; compilation says that the cache fails
        pass
    return function


class Evaluator:
    """A CasADi function called through its buffers: about 1 us per call instead of 30 us.

    Inputs and outputs are dense arrays; a column is an array (k,), or (k, 1) if `matrix`. A
    function with one output returns that array, with several a tuple. Every call returns new
    arrays, but the buffers are shared: not for several threads at once.
    """

    def __init__(self, function: ca.Function, *, matrix: bool = False) -> None:
        """Bind the buffers of a function to arrays of this object."""
        self.function = function
        self._buffer, self._run = function.buffer()
        self._inputs = [np.zeros(function.numel_in(i)) for i in range(function.n_in())]
        self._outputs = [np.zeros(function.numel_out(i)) for i in range(function.n_out())]
        shapes = [_shape(function.size_out(i), matrix) for i in range(function.n_out())]
        buffers = zip(self._outputs, shapes, strict=True)
        self._results = [values.reshape(shape, order="F") for values, shape in buffers]
        for i, values in enumerate(self._inputs):
            self._buffer.set_arg(i, _view(values))  # pyright: ignore[reportCallIssue]
        for i, values in enumerate(self._outputs):
            self._buffer.set_res(i, _view(values))  # pyright: ignore[reportCallIssue]

    def __call__(self, *arguments: Array) -> Array | tuple[Array, ...]:
        """Evaluate; raises InputError when an argument has another number of entries."""
        for values, argument in zip(self._inputs, arguments, strict=True):
            given = np.asarray(argument)
            if given.size != values.size:
                raise InputError(
                    f"{self.function.name()}: expected {len(values)} entries, got "
                    f"an array of shape {given.shape}"
                )
            values[:] = given if given.ndim == 1 else given.ravel()
        self._run()
        if len(self._results) == 1:
            return self._results[0].copy()
        return tuple([values.copy() for values in self._results])


def _view(values: Array) -> memoryview:
    """Return the memory of an array, which CasADi reads and writes."""
    return memoryview(values)  # pyright: ignore[reportArgumentType]


def _shape(size: tuple[int, int], matrix: bool) -> tuple[int, ...]:
    return size if matrix or size[1] != 1 else (size[0],)


class _OnDemand(dict[str, Evaluator]):
    """Evaluators by name, each built on first use."""

    def __init__(self, make: Callable[[str], Evaluator]) -> None:
        super().__init__()
        self._make = make

    def __missing__(self, name: str) -> Evaluator:
        self[name] = self._make(name)
        return self[name]


def group_library(
    content: str, names: Sequence[str], functions: Mapping[str, ca.Function]
) -> Wanted:
    """Return the library that functions of a plant share."""
    return f"{' '.join(names)} {content}", lambda: [functions[name] for name in names]


def load_evaluators(
    content: str,
    libraries: Sequence[Sequence[str]],
    functions: Mapping[str, ca.Function],
    *,
    matrices: Collection[str],
    interpreted: bool,
) -> Mapping[str, Evaluator]:
    """Build evaluators of the functions named in `libraries` on first use.

    With a compiler those named together share one library; otherwise each function is built alone.
    `matrices` names those whose results stay matrices even with a single column.
    """
    group = {name: names for names in libraries for name in names}

    @functools.cache
    def library(names: Sequence[str]) -> Path | None:
        return compile_functions(*group_library(content, names, functions))

    def make(name: str) -> Evaluator:
        path = None if interpreted else library(group[name])
        if path is None:
            function = cached_function(f"{name} {content}", lambda: functions[name])
        else:
            function = ca.external(name, str(path))
        return Evaluator(function, matrix=name in matrices)

    return _OnDemand(make)
