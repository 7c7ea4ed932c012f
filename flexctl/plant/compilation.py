"""CasADi functions as machine code, built once and cached by content.

With a C compiler the functions run compiled; without one the CasADi virtual machine runs the same
graphs. FLEXCTL_CC names the compiler ("none" for the virtual machine), FLEXCTL_CACHE the folder.
"""

from __future__ import annotations

import functools
import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path

import casadi as ca
import numpy as np
import platformdirs

from flexctl.checks import Array
from flexctl.errors import ComputationError, InputError

# Bytes of C beyond which a level of optimisation costs more time than runs will ever gain: the
# compiler's register allocation grows faster than one long function does.
_LEVELS = ((100_000, "-O2"), (250_000, "-O1"))


def find_compiler() -> str | None:
    """Path of the C compiler, or None where there is none (or FLEXCTL_CC is "none")."""
    wanted = os.environ.get("FLEXCTL_CC")
    if wanted == "none":
        return None
    names = [wanted] if wanted else ["gcc", "clang", "cc"]
    compiler = next((found for name in names if (found := shutil.which(name))), None)
    if wanted and compiler is None:
        raise InputError(f"FLEXCTL_CC: wanted a C compiler or none, came {wanted!r} (not found)")
    return compiler


def backend(*, interpreted: bool = False) -> str:
    """How functions are evaluated here, in words."""
    if interpreted:
        return "CasADi virtual machine (not compiled: not worth it for what is asked of this plant)"
    compiler = find_compiler()
    if compiler is None:
        why = "FLEXCTL_CC=none" if os.environ.get("FLEXCTL_CC") else "no C compiler found"
        return f"CasADi virtual machine ({why}: slower, same results)"
    return f"compiled C ({Path(compiler).name})"


def cache_folder() -> Path:
    """Folder of compiled libraries: FLEXCTL_CACHE, else the user's cache folder."""
    wanted = os.environ.get("FLEXCTL_CACHE") or platformdirs.user_cache_dir("flexctl")
    return Path(wanted).expanduser().absolute()  # a loader does not look for bare names here


@functools.cache
def source_digest() -> str:
    """Digest of the package's own sources: a changed formula must not meet an old library."""
    digest = hashlib.sha256(ca.CasadiMeta.version().encode())
    package = Path(__file__).parent.parent
    for path in sorted([*package.rglob("*.py"), *package.rglob("*.c")]):
        if path.relative_to(package).parts[0] in {"beam", "body", "plant", "design", "loop"}:
            digest.update(path.read_bytes())
    return digest.hexdigest()


def compile_functions(content: str, build: Callable[[], Sequence[ca.Function]]) -> Path | None:
    """Compile functions into a shared library, or find them in the cache.

    Parameters
    ----------
    content
        All that determines the functions, as text; with the sources' digest it is the cache key.
    build
        Makes the functions; called only when the cache has no library.

    Returns
    -------
    Path or None
        The shared library; None without a compiler.
    """

    def generate(folder: Path) -> Path:
        generator = ca.CodeGenerator("functions", {"with_header": False})
        for function in build():
            generator.add(function)
        generator.generate(f"{folder}{os.sep}")
        return folder / "functions.c"

    return cached_library(content, generate)


def cached_library(content: str, generate: Callable[[Path], Path]) -> Path | None:
    """Find a shared library in the cache, or compile it there; None without a compiler.

    `generate` writes the C source into a folder and returns its path. The key is the digest of
    `content`, the sources, the compiler with its levels and the machine's type.
    """
    compiler = find_compiler()
    if compiler is None:
        return None
    machine = f"{platform.machine()} {sys.platform}"
    key = "\n".join([source_digest(), compiler, repr(_LEVELS), machine, content])
    library = cache_folder() / f"{hashlib.sha256(key.encode()).hexdigest()[:32]}.so"
    if not library.exists():
        library.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=library.parent) as folder:
            built = compile_source(generate(Path(folder)), compiler)
            os.replace(built, library)  # atomic: another process never sees half a library
    return library


def compile_source(source: Path, compiler: str) -> Path:
    """Compile one C file into a shared library beside it.

    Raises
    ------
    ComputationError
        When the compiler fails; says how to go on without it.
    """
    size = source.stat().st_size
    level = next((level for most, level in _LEVELS if size <= most), "-O0")
    built = source.with_suffix(".so")
    command = [compiler, level, "-fPIC", "-shared", "-o", str(built), str(source), "-lm"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        first = (done.stderr.strip().splitlines() or ["no message"])[0]
        raise ComputationError(
            f"the C compiler {compiler} failed: {first}; FLEXCTL_CC=none goes on without it"
        )
    return built


class Evaluator:
    """A CasADi function called through its buffers: about a microsecond instead of thirty.

    Inputs and outputs are dense arrays; a column is an array (k,), or (k, 1) if `matrix`. A
    function of one output returns that array, of several a tuple. Every call returns new arrays,
    but the buffers are shared: not for several threads at once.
    """

    def __init__(self, function: ca.Function, *, matrix: bool = False) -> None:
        """Tie the buffers of a function to arrays of this object."""
        self.function = function
        self._buffer, self._run = function.buffer()
        self._inputs = [np.zeros(function.numel_in(i)) for i in range(function.n_in())]
        self._outputs = [np.zeros(function.numel_out(i)) for i in range(function.n_out())]
        self._shapes = [_shape(function.size_out(i), matrix) for i in range(function.n_out())]
        for i, values in enumerate(self._inputs):
            self._buffer.set_arg(i, _view(values))  # pyright: ignore[reportCallIssue]
        for i, values in enumerate(self._outputs):
            self._buffer.set_res(i, _view(values))  # pyright: ignore[reportCallIssue]

    def __call__(self, *arguments: Array) -> Array | tuple[Array, ...]:
        """Evaluate; raises InputError when an argument has another number of entries."""
        for values, argument in zip(self._inputs, arguments, strict=True):
            if np.size(argument) != len(values):
                raise InputError(
                    f"{self.function.name()}: wanted {len(values)} entries, came "
                    f"an array of shape {np.shape(argument)}"
                )
            values[:] = np.ravel(argument)
        self._run()
        results = tuple(
            values.reshape(shape, order="F").copy()
            for values, shape in zip(self._outputs, self._shapes, strict=True)
        )
        return results[0] if len(results) == 1 else results


def _view(values: Array) -> memoryview:
    """Return the memory of an array, which CasADi reads and writes."""
    return memoryview(values)  # pyright: ignore[reportArgumentType]


def _shape(size: tuple[int, int], matrix: bool) -> tuple[int, ...]:
    return size if matrix or size[1] != 1 else (size[0],)


class _OnDemand(dict[str, Evaluator]):
    """Evaluators by name, each made when it is first asked for."""

    def __init__(self, make: Callable[[str], Evaluator]) -> None:
        super().__init__()
        self._make = make

    def __missing__(self, name: str) -> Evaluator:
        self[name] = self._make(name)
        return self[name]


def load_evaluators(
    content: str,
    names: Sequence[str],
    functions: Mapping[str, ca.Function],
    *,
    matrices: Collection[str] = (),
    interpreted: bool = False,
) -> Mapping[str, Evaluator]:
    """Make evaluators of the named functions, when first asked for.

    Where a compiler is found they share one library; else each function is built alone.
    `matrices` names those whose results stay matrices even with a single column.
    """
    library = None
    if not interpreted:
        key = f"{' '.join(names)} {content}"
        library = compile_functions(key, lambda: [functions[name] for name in names])

    def make(name: str) -> Evaluator:
        found = functions[name] if library is None else ca.external(name, str(library))
        return Evaluator(found, matrix=name in matrices)

    return _OnDemand(make)
