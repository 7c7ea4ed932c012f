"""The conventions of the project: cheap imports, sources that exist, docstrings everywhere."""

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import flexctl

ROOT = Path(__file__).parents[1]
BIBLIOGRAPHY = set(
    re.findall(r"^@\w+\{(\w+),", (ROOT / "references.bib").read_text(), re.MULTILINE)
)
PAPERS = (ROOT / "examples" / "papers").rglob("*.py")
MODULES = sorted(
    [*(ROOT / "flexctl").rglob("*.py"), *(p for p in PAPERS if not p.name.startswith("test_"))]
)
CATALOGUE = sorted([*(ROOT / "models").glob("*.toml"), *(ROOT / "designs").glob("*.toml")])
HEAVY = {"casadi", "control", "matplotlib", "pydantic", "scipy", "slycot", "xarray"}


def relative(path):
    """Name a file in a test's identifier."""
    return path.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("module", ["flexctl", "flexctl.__main__", "flexctl.view.cli"])
def test_importing_loads_no_heavy_library(module):
    code = f"import sys, {module}; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stderr
    assert HEAVY.isdisjoint(done.stdout.split())


@pytest.mark.parametrize("name", flexctl.__all__)
def test_every_public_name_is_found_in_its_room(name):
    assert callable(getattr(flexctl, name))


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'no_such_name'"):
        flexctl.no_such_name  # noqa: B018


@pytest.mark.parametrize("path", MODULES, ids=relative)
def test_every_cited_source_is_in_the_bibliography(path):
    text = path.read_text()
    cited = set(re.findall(r"Sources?:\s*\[(\w+)\]|\[([A-Z][A-Za-z]+\d\d)\]", text))

    assert {first or second for first, second in cited} <= BIBLIOGRAPHY


@pytest.mark.parametrize("path", CATALOGUE, ids=relative)
def test_every_catalogue_file_says_what_it_is_and_whence(path):
    content = tomllib.loads(path.read_text())

    assert content["summary"].strip()
    sources = set(re.findall(r"\w+", content["source"]))
    assert sources & (BIBLIOGRAPHY | {"flexctl"}), f"no known key in {content['source']!r}"


def test_the_catalogue_is_not_empty():
    assert CATALOGUE


def public_definitions(node):
    """Yield the public classes and functions of a module or class, methods included."""
    for child in ast.iter_child_nodes(node):
        is_definition = isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        if is_definition and not child.name.startswith("_"):
            yield child
            if isinstance(child, ast.ClassDef):
                yield from public_definitions(child)


@pytest.mark.parametrize("path", MODULES, ids=relative)
def test_every_public_definition_has_a_docstring(path):
    module = ast.parse(path.read_text())
    missing = [node.name for node in public_definitions(module) if not ast.get_docstring(node)]

    assert ast.get_docstring(module)
    assert missing == []
