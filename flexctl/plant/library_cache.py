"""Shared libraries by content: loaded from the cache, or compiled and stored there.

Keys are digests of records and of the package's own source code.
A library is written to a draft, synced and renamed, and ends in a digest of its content: one that a
kill or a full disk truncated is detected before loading, and compiled again.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes as ct
import dataclasses
import errno
import functools
import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np
import platformdirs
from pydantic import BaseModel

from flexctl.errors import FlexctlWarning, InputError
from flexctl.model import DRAFT, read_sealed, write_sealed

try:
    import fcntl
except ImportError:  # Windows has no such locks
    fcntl = None

# Bytes of C beyond which a level of optimisation costs more time than it saves: the cost of
# register allocation grows faster than the length of a function.
_LEVELS = ((100_000, "-O2"), (250_000, "-O1"))
_FLAGS = ("-fPIC", "-shared")
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_BUILDING = "flexctl-building-"
_ABANDONED = 3600.0  # s after which files of a build are abandoned
_PATIENCE = 300.0  # s to wait for another process that compiles the same library
_PAUSE = 0.05  # s between two looks at its lock


_APART = ("view",)  # rooms on which no compiled or cached result depends


@functools.cache
def source_digest() -> str:
    """Digest of the sources of all rooms below the view, and of CasADi's version.

    A changed formula must never run with a library of the old one.
    """
    digest = hashlib.sha256(ca.CasadiMeta.version().encode())
    for path in source_files():
        digest.update(path.read_bytes())
    return digest.hexdigest()


def source_files() -> list[Path]:
    """Files that enter `source_digest`, in order."""
    package = Path(__file__).parent.parent
    below = (package / room for room in sorted(os.listdir(package)) if room not in _APART)
    files = (path for room in below for path in (room.rglob("*") if room.is_dir() else [room]))
    return sorted(path for path in files if path.suffix in {".py", ".c", ".h"})


def record_digest(*values: Any) -> str:
    """Digest of numbers, text, arrays and records of them, field by field.

    A value of another kind, or of a class whose source is not part of `source_digest`, makes the
    digest random, so that no stale result is ever found.
    """
    digest = hashlib.sha256()
    for value in values:
        _feed(digest, value)
    return digest.hexdigest()


def _feed(digest: Any, value: Any) -> None:
    """Add a value to a digest, type and size first, so that different values stay different."""
    digest.update(f"{type(value).__qualname__} ".encode())
    if value is None or isinstance(value, bool | int | float | str | np.generic):
        digest.update(f"{value!r};".encode())
    elif isinstance(value, np.ndarray) and value.dtype != object:
        digest.update(f"{value.dtype.str} {value.shape} ".encode() + value.tobytes())
    elif isinstance(value, Mapping):
        _feed(digest, tuple(value.items()))
    elif isinstance(value, tuple | list):
        digest.update(f"{len(value)} ".encode())
        for part in value:
            _feed(digest, part)
    elif isinstance(value, BaseModel) and _ours(value):
        digest.update(f"{value.model_dump_json()};".encode())
    elif dataclasses.is_dataclass(value) and _ours(value):
        for part in dataclasses.fields(value):
            _feed(digest, getattr(value, part.name))
    else:
        digest.update(os.urandom(16))


def _ours(value: object) -> bool:
    """Whether the source of a value's class is part of `source_digest`."""
    package, _, rest = type(value).__module__.partition(".")
    return package == "flexctl" and rest.partition(".")[0] not in _APART


def find_compiler() -> str | None:
    """Path of the C compiler, or None where there is none (or FLEXCTL_CC is "none")."""
    named = os.environ.get("FLEXCTL_CC")
    if named == "none":
        return None
    names, path = [named] if named else ["gcc", "clang", "cc"], os.environ.get("PATH")
    compiler = next((file for name in names if (file := _which(name, path))), None)
    if named and compiler is None:
        raise InputError(f"FLEXCTL_CC: expected a C compiler or none, got {named!r} (not found)")
    return compiler


@functools.cache
def _which(name: str, path: str | None) -> str | None:
    return shutil.which(name, path=path)


@functools.cache
def processor() -> frozenset[str]:
    """Names of the instructions that the processor has; empty where Linux does not tell them."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return frozenset()
    return frozenset(next((line.split() for line in lines if line.startswith("flags")), []))


def _own_flags() -> tuple[str, ...]:
    """Return flags of the compiler for what this processor has, a part of the key.

    With AVX a sum needs not overwrite one of its operands, which saves a fifth of the time. Unlike
    FMA, which rounds once where others round twice, it changes no result.
    """
    return ("-mavx",) if "avx" in processor() else ()


def cache_folder() -> Path:
    """Folder of compiled libraries: FLEXCTL_CACHE, else the user's cache folder.

    Raises OSError when the user has no home to keep it in.
    """
    try:
        folder = os.environ.get("FLEXCTL_CACHE") or platformdirs.user_cache_dir("flexctl")
        return Path(folder).expanduser().absolute()  # the loader searches none for bare names
    except RuntimeError as error:
        raise FileNotFoundError(f"no home folder: {error}") from error


class _CompilerError(Exception):
    """The compiler fails in any folder."""


class _Trouble:
    """Why this process cannot compile into the cache, and why not at all; empty while it can."""

    cache = ""
    everywhere = ""


def why_not_compiled() -> str:
    """Why functions are not compiled although they should be; empty if they are."""
    if find_compiler() is None:
        return "FLEXCTL_CC=none" if os.environ.get("FLEXCTL_CC") else "no C compiler found"
    return _Trouble.everywhere


def cached_library(
    content: str, generate: Callable[[Path], Path], flags: tuple[str, ...] = ()
) -> Path | None:
    """Find a shared library in the cache, or compile it there; None if nothing is compiled.

    If the cache cannot be used, libraries go to a temporary folder of the process; if there is none
    either, or the compiler fails, nothing is compiled any more. The first failure warns.

    Parameters
    ----------
    content
        All that determines the source, as text. With the compiler and its levels, CasADi's version
        and the machine's type it is the key.
    generate
        Writes the C source into a folder and returns its path; called only when there is no such
        library.
    flags
        Of the compiler, beside its level; a part of the key.
    """
    if why_not_compiled():
        return None
    compiler = find_compiler() or ""
    name = _library_name(content, compiler, flags)
    try:
        kept = cache_folder() / name
        if _is_loaded(kept):
            return kept
        if not _Trouble.cache:
            return _build(kept, generate, compiler, flags)
        reason = _Trouble.cache
    except (OSError, _CompilerError) as error:
        reason = _words(error)
    return _build_aside(name, generate, compiler, flags, reason)


def build_ahead(wanted: Sequence[tuple[str, Callable[[Path], Path]]]) -> None:
    """Compile libraries, given as to `cached_library`, that the cache lacks: one on every core.

    While compilers run, the next source is generated. Nothing is raised or warned of: where one
    fails, it and the next are left to `cached_library`, which says why.
    """
    if why_not_compiled() or _Trouble.cache:
        return
    compiler = find_compiler() or ""
    jobs: dict[Path, Future[Path]] = {}
    with ThreadPoolExecutor(_cores()) as pool, contextlib.ExitStack() as folders:
        try:
            for content, generate in wanted:
                library = cache_folder() / _library_name(content, compiler, ())
                if library in jobs or _is_loaded(library):
                    continue
                library.parent.mkdir(parents=True, exist_ok=True)
                if not folders.enter_context(_alone(library, patience=0.0)):
                    continue  # another process compiles it; `cached_library` waits for it
                made = tempfile.TemporaryDirectory(dir=library.parent, prefix=_BUILDING)
                source = generate(Path(folders.enter_context(made)))
                jobs[library] = pool.submit(compile_source, source, compiler)
            for library, job in jobs.items():
                write_sealed(library, job.result().read_bytes())
        except (OSError, _CompilerError):
            pool.shutdown(cancel_futures=True)


def _cores() -> int:
    """Cores that this process may use: a container or a batch job may have fewer than there are."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _library_name(content: str, compiler: str, flags: tuple[str, ...]) -> str:
    """File name of a library in the cache."""
    machine = f"{platform.machine()} {sys.platform} CasADi {ca.CasadiMeta.version()}"
    levels = repr((_LEVELS, _FLAGS, _own_flags(), flags))
    key = "\n".join([compiler, levels, machine, content])
    return f"{hashlib.sha256(key.encode()).hexdigest()[:32]}.so"


def _build_aside(
    name: str,
    generate: Callable[[Path], Path],
    compiler: str,
    flags: tuple[str, ...],
    reason: str,
) -> Path | None:
    """Compile for this process only, as the cache failed for `reason`; None if that fails too."""
    where = os.environ.get("FLEXCTL_CACHE") or "the user's cache folder"
    trouble = f"compile cache {where}: cannot be used ({reason})"
    try:
        aside = _own_folder() / name
        built = aside if _is_loaded(aside) else _build(aside, generate, compiler, flags)
    except OSError as error:
        _Trouble.everywhere = "no folder to compile into"
        _warn(f"{trouble}, nor a temporary folder ({_words(error)}): not compiled, slower")
        return None
    except _CompilerError as error:
        _Trouble.everywhere = "the C compiler fails"
        _warn(f"{error}: not compiled, slower; FLEXCTL_CC names another compiler, or none")
        return None
    if not _Trouble.cache:
        _Trouble.cache = reason
        _warn(f"{trouble}: compiled for this run only; FLEXCTL_CACHE names another folder")
    return built


def _warn(message: str) -> None:
    warnings.warn(message, FlexctlWarning, stacklevel=2)


def _words(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error)


@functools.cache
def _own_folder() -> Path:
    """Folder of this process, removed at its end."""
    folder, owner = Path(tempfile.mkdtemp(prefix="flexctl-")), os.getpid()

    def remove() -> None:
        if os.getpid() == owner:  # a forked child must not take its parent's
            shutil.rmtree(folder, ignore_errors=True)

    atexit.register(remove)
    return folder


_loaded: set[Path] = set()


def _is_loaded(library: Path) -> bool:
    """Load a library; whether there is an intact one under this name."""
    if library in _loaded:
        return True
    try:
        read_sealed(library)
        ct.CDLL(str(library))
    except OSError:  # missing, truncated, or not for this machine
        return False
    _loaded.add(library)
    return True


def _build(
    library: Path, generate: Callable[[Path], Path], compiler: str, flags: tuple[str, ...]
) -> Path:
    """Compile a library, seal it and load it.

    Raises OSError when it cannot be written, or cannot be loaded from its folder. Raises
    _CompilerError when the compiler fails.
    """
    library.parent.mkdir(parents=True, exist_ok=True)
    _sweep(library.parent)
    with _alone(library, patience=_PATIENCE):
        if _is_loaded(library):  # made by another process meanwhile
            return library
        with tempfile.TemporaryDirectory(dir=library.parent, prefix=_BUILDING) as folder:
            code = compile_source(generate(Path(folder)), compiler, flags).read_bytes()
        write_sealed(library, code)
    if not _is_loaded(library):
        raise OSError("what was compiled there cannot be loaded")
    return library


@contextlib.contextmanager
def _alone(library: Path, *, patience: float) -> Iterator[bool]:
    """Keep other processes from compiling a library at the same time; whether that holds.

    After `patience` [s] without it, on a file system without locks, or where the lock's file is
    another user's, it is compiled twice, which does no harm. A process that ends lets its lock go,
    however it ends.
    """
    path = library.with_name(f"{_BUILDING}{library.stem}.lock")
    held = True
    try:
        file = path.open("a")
    except PermissionError:
        yield False
        return
    with file:
        try:
            held = _lock(file.fileno(), patience)
            yield held
        finally:
            if held:
                path.unlink(missing_ok=True)


def _lock(descriptor: int, patience: float) -> bool:
    """Lock a file; whether that succeeded within `patience` [s], or cannot be done at all."""
    if fcntl is None:
        return True
    end = time.monotonic() + patience
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= end:
                return False
            time.sleep(_PAUSE)
        except OSError:  # no locks here
            return True
        else:
            return True


def _sweep(folder: Path) -> None:
    """Remove files that killed builds left."""
    for left in [*folder.glob(f"{_BUILDING}*"), *folder.glob(f"{DRAFT}*")]:
        try:
            if time.time() - left.stat().st_mtime > _ABANDONED:
                shutil.rmtree(left) if left.is_dir() else left.unlink()
        except OSError:  # its build has just ended
            continue


@functools.cache
def compiles(text: str, flags: tuple[str, ...], compiler: str | None) -> bool:
    """Whether a compiler builds this C source with these flags, and the library can be loaded."""
    if compiler is None:
        return False
    try:
        with tempfile.TemporaryDirectory() as folder:
            source = Path(folder) / "trial.c"
            source.write_text(text)
            ct.CDLL(str(compile_source(source, compiler, flags)))
    except (OSError, _CompilerError):
        return False
    return True


def compile_source(source: Path, compiler: str, flags: tuple[str, ...] = ()) -> Path:
    """Compile one C file into a shared library beside it.

    Raises OSError when the disk is full. Raises _CompilerError when the compiler fails otherwise,
    or says that all is well and writes nothing.
    """
    size = source.stat().st_size
    level = next((level for most, level in _LEVELS if size <= most), "-O0")
    built = source.with_suffix(".so")
    # its own files beside the source, its messages in English
    environment = os.environ | {"TMPDIR": str(source.parent), "LC_ALL": "C"}

    def run(*own: str) -> subprocess.CompletedProcess[str]:
        command = [compiler, level, *_FLAGS, *own, *flags, "-o", str(built), str(source), "-lm"]
        try:
            return subprocess.run(
                command,
                capture_output=True,
                text=True,
                errors="replace",
                check=False,
                env=environment,
            )
        except OSError as error:  # of the compiler itself
            raise _CompilerError(f"the C compiler {compiler} cannot be run: {error}") from error

    done = run(*_own_flags())
    if done.returncode and _own_flags():  # not every compiler knows them
        done = run()
    if done.returncode:
        for code in _FULL:
            if os.strerror(code) in done.stderr:
                raise OSError(code, os.strerror(code))
        first = (done.stderr.strip().splitlines() or [f"status {done.returncode}"])[0]
        raise _CompilerError(f"the C compiler {compiler} failed: {first}")
    if not built.exists():
        raise _CompilerError(f"the C compiler {compiler} wrote nothing")
    return built
