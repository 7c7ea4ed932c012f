"""Compiled code is kept under a digest of the sources: one byte of any room makes another key."""

import shutil
from pathlib import Path

import pytest

import flexctl
from flexctl.beam.load_path import SlidingLine
from flexctl.plant import library_cache, sliding
from flexctl.plant import plant as plant_module
from tests.arms import plant_of, single_link

PACKAGE = Path(flexctl.__file__).parent
NO_SOURCE = {"py.typed", "report.html.jinja"}  # a marker; words around an answer


def sources(package):
    """Files of a package from which its answers are computed, by (folder, kind), never empty."""
    found = {}
    for path in sorted(package.rglob("*")):
        if path.is_file() and path.suffix != ".pyc" and path.name not in NO_SOURCE:
            folder = path.parent.relative_to(package).as_posix()
            if path.stat().st_size:
                found.setdefault((folder, path.suffix), []).append(path)
    return found


PLACES = sorted(sources(PACKAGE))  # as found on disk: a new room is tested the day it lands
VIEW = [place for place in PLACES if place[0].split("/")[0] == "view"]
BELOW = [place for place in PLACES if place not in VIEW]


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    """Folder of a copy of the package."""
    folder = tmp_path_factory.mktemp("copy") / "flexctl"
    shutil.copytree(PACKAGE, folder, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


@pytest.fixture
def digest(package, monkeypatch):
    """digest(): what the sources of the copy have."""
    monkeypatch.setattr(library_cache, "__file__", str(package / "plant" / "library_cache.py"))
    return library_cache.source_digest.__wrapped__


@pytest.fixture
def change(package):
    """change(place): flip a bit of a source there, until the test ends."""
    changed = {}

    def flip(place):
        path = sources(package)[place][0]
        changed[path] = path.read_bytes()
        path.write_bytes(bytes([changed[path][0] ^ 1]) + changed[path][1:])

    yield flip
    for path, content in changed.items():
        path.write_bytes(content)


def test_every_room_is_among_the_places():
    rooms = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert {folder.split("/")[0] for folder, _ in PLACES} == rooms | {"."}
    assert VIEW
    assert {".py", ".c", ".h"} <= {kind for _, kind in BELOW}


def test_a_copy_has_the_digest_of_the_package(digest):
    assert digest() == library_cache.source_digest()


@pytest.mark.slow_but("model.py", "loop.py", "beam.py")
@pytest.mark.parametrize("place", BELOW, ids="".join)
def test_a_byte_below_the_view_makes_another_digest(digest, change, place):
    before = digest()
    change(place)

    assert digest() != before


@pytest.mark.parametrize("place", VIEW, ids="".join)
def test_a_byte_of_the_view_makes_no_other_digest(digest, change, place):
    before = digest()
    change(place)

    assert digest() == before


def test_another_digest_makes_another_key_of_a_plant(monkeypatch):
    before = plant_of(single_link(), order=1).content
    monkeypatch.setattr(plant_module, "source_digest", lambda: "of other sources")

    assert plant_of(single_link(), order=1).content != before


def test_modes_of_a_sliding_link_that_other_sources_left_are_not_met(tmp_path, monkeypatch):
    monkeypatch.setenv("FLEXCTL_CACHE", str(tmp_path))
    arguments = 1, SlidingLine(mass_per_length=0.331, mass=0.0828), 0.5, 0.7
    fitted = sliding._fitted.__wrapped__
    fitted(*arguments)
    monkeypatch.setattr(sliding, "source_digest", lambda: "of other sources")
    fitted(*arguments)

    assert len(list(tmp_path.iterdir())) == 2
