"""Run tests against one slip at a time, in processes forked from one that is warm."""

from __future__ import annotations

import ast
import contextlib
import importlib
import os
import pkgutil
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType

from slips import Slip, find_slips

CAUGHT, SURVIVED, TIMED_OUT = "caught", "survived", "timed out"
_PYTEST = ("-x", "-q", "-p", "no:cacheprovider", "--assert=plain", "-m", "not slow")
_LEAST = 10.0  # seconds that any slip may take
_SETTINGS = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MPLBACKEND": "Agg",
    "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",  # no test needs a plugin, and loading takes long
}


@contextlib.contextmanager
def project_copy(root: Path) -> Iterator[Path]:
    """Copy what git knows or would add into a folder that is removed afterwards."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=root, capture_output=True, text=True, check=True,
    )  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="flexctl-mutation-") as folder:
        for name in listed.stdout.splitlines():
            if (root / name).is_file():
                (Path(folder) / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(root / name, Path(folder) / name)
        yield Path(folder)


@dataclass(frozen=True, kw_only=True)
class Runner:
    """Tests of a copy of the project, each attempt in a process of its own.

    `factor`: times the tests' own time that an attempt may take.
    """

    root: Path
    factor: float = 4.0

    def __post_init__(self) -> None:
        """Load the package: an attempt loads afresh only what depends on the changed file."""
        os.environ |= _SETTINGS  # before anything is imported that reads them
        os.chdir(self.root)
        sys.path.insert(0, str(self.root))
        import hypothesis  # noqa: F401
        import pytest  # noqa: F401

        import flexctl

        for module in pkgutil.walk_packages(flexctl.__path__, "flexctl."):
            if not module.name.endswith("__main__"):
                importlib.import_module(module.name)

    def slips(self, file: str) -> list[Slip]:
        """All slips of a file."""
        return find_slips(self._tree(file))

    def _tree(self, file: str) -> ast.Module:
        return ast.parse((self.root / file).read_text(encoding="utf-8"))

    def baseline(self, tests: Sequence[str]) -> float:
        """Seconds that an attempt may take; the tests must pass as things are."""
        start = time.monotonic()
        status = self._fork(lambda: None, tests, limit=3600.0)
        if status != 0:
            raise SystemExit(f"{' '.join(tests)}: expected tests that pass, got status {status}")
        return max(_LEAST, self.factor * (time.monotonic() - start))

    def attempt(self, file: str, slip: Slip, tests: Sequence[str], limit: float) -> str:
        """Say what the tests make of one slip."""
        tree = self._tree(file)
        twin = next(other for other in find_slips(tree) if other.label == slip.label)
        path = str(self.root / file)
        again = _dependents(path)
        status = self._fork(lambda: _put_in(path, twin.apply(tree), again), tests, limit)
        if status is None:
            return TIMED_OUT
        return SURVIVED if status == 0 else CAUGHT

    def _fork(self, prepare, tests: Sequence[str], limit: float) -> int | None:
        """Run tests in a child; its status (negative for a signal), None where it ran too long."""
        sys.stdout.flush()
        with tempfile.TemporaryDirectory(prefix="flexctl-mutation-") as own:
            child = os.fork()
            if child == 0:
                _become_tests(prepare, tests, Path(own))
            return _wait(child, limit)


def _become_tests(prepare, tests: Sequence[str], own: Path) -> None:
    """Never returns: the process ends with the status of its tests."""
    status = 70
    try:
        os.setsid()
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        null = os.open(os.devnull, os.O_RDWR)
        said = os.open(own / "said", os.O_CREAT | os.O_WRONLY)
        for stream, target in ((0, null), (1, said), (2, said)):
            os.dup2(target, stream)
        os.environ |= {"FLEXCTL_CACHE": str(own / "cache"), "TMPDIR": str(own)}
        tempfile.tempdir = None
        prepare()
        import pytest

        status = int(pytest.main([*_PYTEST, f"--basetemp={own / 'tests'}", *tests]))
    except BaseException:  # noqa: BLE001 - said where the tests speak; the status tells
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        if status != 0 and os.environ.get("FLEXCTL_MUTATION_LOG"):
            shutil.copy(own / "said", os.environ["FLEXCTL_MUTATION_LOG"])
        os._exit(status)


def _wait(child: int, limit: float) -> int | None:
    """Wait for a child that leads its own group; end the group when the limit is over."""
    end, done, status = time.monotonic() + limit, 0, 0
    try:
        while not done and time.monotonic() < end:
            time.sleep(0.02)
            done, status = os.waitpid(child, os.WNOHANG)
    finally:  # also where this process is interrupted
        if not done:
            for end_it in (os.killpg, os.kill):  # it may not lead its group yet
                with contextlib.suppress(ProcessLookupError):
                    end_it(child, signal.SIGKILL)
            os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status) if done else None


def _put_in(path: str, tree: ast.Module, dependents: frozenset[str]) -> None:
    """Let imports find the changed tree in place of the file, and load all that use it again."""
    code, read = compile(tree, path, "exec"), SourceFileLoader.get_code
    for name in dependents:
        del sys.modules[name]

    def get_code(self, fullname):
        return code if self.path == path else read(self, fullname)

    SourceFileLoader.get_code = get_code


@cache
def _dependents(path: str) -> frozenset[str]:
    """Loaded modules of the package that import a file, themselves or through others."""
    own = {n: m for n, m in sys.modules.items() if n.split(".")[0] == "flexctl"}
    imports = {name: _imported(module) for name, module in own.items()}
    found = {name for name, module in own.items() if module.__file__ == path}
    while more := {name for name, used in imports.items() if used & found} - found:
        found |= more
    return frozenset(found)


def _imported(module: ModuleType) -> set[str]:
    """Names of modules, and of what may be modules, that a module's file imports anywhere."""
    names = set()
    for node in ast.walk(ast.parse(Path(module.__file__ or "").read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
    return names
