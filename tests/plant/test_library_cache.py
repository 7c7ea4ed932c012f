"""Libraries are cached by what is compiled, are whole or not there, and a cache may fail."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from flexctl.errors import ComputationError, FlexctlWarning
from flexctl.model.files import replacing_file, write_sealed
from flexctl.model.lookup import load_model
from flexctl.model.record import BasisChoice
from flexctl.plant import library_cache
from flexctl.plant.compilation import backend
from flexctl.plant.library_cache import build_ahead, cached_library, find_compiler
from flexctl.plant.plant import assemble_plant

pytestmark = pytest.mark.skipif(find_compiler() is None, reason="no C compiler here")
STARTS = np.array([0.3, 0.01])


@pytest.fixture(scope="module")
def arm():
    return load_model("single-link-hub")


@pytest.fixture(scope="module")
def plant(arm):
    return assemble_plant(arm, BasisChoice(order=1))


@pytest.fixture(autouse=True)
def _fresh(monkeypatch):
    """Forget what this process knows of caches, as another process would not know it."""
    monkeypatch.setattr(library_cache, "_loaded", set())
    monkeypatch.setattr(library_cache._Trouble, "cache", "")
    monkeypatch.setattr(library_cache._Trouble, "everywhere", "")


def answer(folder):
    source = folder / "answer.c"
    source.write_text("double answer(void) { return 42.0; }\n")
    return source


def count_builds():
    """Make a generator that counts how often it is asked."""
    asked = []

    def generate(folder):
        asked.append(folder)
        return answer(folder)

    return generate, asked


def library_of(content, generate) -> Path:
    path = cached_library(content, generate)
    assert path is not None
    return path


# --- what the key is made of


def test_bodies_made_for_another_arm_make_another_plant(arm):
    """Modes that know a tip load differ from those of a free tip: so do masses of coordinates."""
    link = arm.links[0].model_validate(arm.links[0].table() | {"tip_load": {"include": ["M"]}})
    loaded = arm.model_copy(update={"links": (link,)})
    free, clamped = (assemble_plant(a, BasisChoice(order=1)) for a in (arm, loaded))
    mixed = replace(free, bodies=clamped.bodies)
    truth = replace(mixed, interpreted=True).mass_matrix(STARTS)
    free.mass_matrix(STARTS)  # in the cache, under what a poisoned key would be

    assert mixed.content != free.content
    assert mixed.mass_matrix(STARTS) == pytest.approx(truth, rel=1e-12)


def test_the_key_of_a_plant_is_the_same_in_another_process(plant):
    code = (
        "from flexctl.model import BasisChoice, load_model; "
        "from flexctl.plant import assemble_plant; "
        "print(assemble_plant(load_model('single-link-hub'), BasisChoice(order=1)).content)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[2],
    )

    assert done.stdout.strip() == plant.content


# --- half a library is none


FAULTS = {
    "empty": lambda whole: whole[:0],
    "first 100 bytes": lambda whole: whole[:100],
    "last byte lost": lambda whole: whole[:-1],
    "a bit of the code flipped": lambda whole: whole[:400] + bytes([whole[400] ^ 1]) + whole[401:],
    "a bit of the digest flipped": lambda whole: whole[:-1] + bytes([whole[-1] ^ 1]),
    "zeros, as after a loss of power": lambda whole: bytes(len(whole)),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_library_that_is_not_whole_is_built_again(fault, monkeypatch):
    generate, asked = count_builds()
    path = library_of(fault, generate)
    path.write_bytes(FAULTS[fault](path.read_bytes()))
    monkeypatch.setattr(library_cache, "_loaded", set())
    again = library_of(fault, generate)

    assert again == path
    assert len(asked) == 2
    assert library_cache._is_loaded(again)


def test_a_library_of_another_machine_is_built_again(tmp_path, monkeypatch):
    """It is whole, but the loader does not take it."""
    generate, asked = count_builds()
    name = library_of("foreign", generate).name
    write_sealed(tmp_path / name, b"\x7fELF, but not ours")
    foreign = (tmp_path / name).read_bytes()
    monkeypatch.setenv("FLEXCTL_CACHE", str(tmp_path))
    library_of("foreign", generate)

    assert len(asked) == 2
    assert (tmp_path / name).read_bytes() != foreign


def test_a_whole_library_is_found_by_the_next_process(monkeypatch):
    generate, asked = count_builds()
    path = library_of("found", generate)
    monkeypatch.setattr(library_cache, "_loaded", set())

    assert library_of("found", generate) == path
    assert len(asked) == 1
    assert [left.name for left in path.parent.glob("*building-*")] == []


def test_what_a_killed_build_left_is_removed_an_hour_later(tmp_path, monkeypatch):
    """What others keep there is theirs: the folder may be a user's home."""
    monkeypatch.setenv("FLEXCTL_CACHE", str(tmp_path))
    left = [tmp_path / "flexctl-building-x1"]
    with replacing_file(tmp_path / f"{'3f' * 16}.so") as draft:
        draft.write_text("text")
        left.append(draft.rename(tmp_path / f"{draft.name}x"))  # its process did not unwind
        draft.write_text("text")
    (tmp_path / f"{'3f' * 16}.so").unlink()
    kept = [tmp_path / "building-plans", tmp_path / ".profile", tmp_path / "flexctl-building-new"]
    for path in (*left, *kept):
        path.mkdir() if "building" in path.name else path.write_text("text")
        os.utime(path, (0, 0))
    os.utime(kept[2])
    library_of("sweeps", answer)

    assert [path for path in (*left, *kept) if path.exists()] == kept


# --- a cache that fails


def no_folder(tmp_path):
    """Return a path that can be no folder, for root neither: it is a file."""
    path = tmp_path / "file"
    path.write_text("no folder")
    return path


def test_a_cache_that_cannot_be_written_is_said_once_and_the_run_goes_on(tmp_path, monkeypatch):
    monkeypatch.setenv("FLEXCTL_CACHE", str(no_folder(tmp_path)))
    with pytest.warns(FlexctlWarning) as said:
        first, second = (library_of(f"aside {i}", answer) for i in range(2))

    assert len(said) == 1
    assert str(said[0].message).count("\n") == 0
    assert "cannot be used (" in str(said[0].message)
    assert first.is_file()
    assert second.is_file()
    assert first.parent != tmp_path
    assert "compiled C" in backend()


@pytest.mark.parametrize(
    ("owner", "asked"),
    [(Path, "expanduser"), (library_cache.platformdirs, "user_cache_dir")],
    ids=["pathlib", "platformdirs"],
)
def test_a_home_that_is_unknown_is_a_cache_that_cannot_be_written(owner, asked, monkeypatch):
    def no_home(*_):
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("FLEXCTL_CACHE")
    monkeypatch.setattr(owner, asked, no_home)
    with pytest.warns(FlexctlWarning, match="no home folder"):
        assert library_of("homeless", answer).is_file()


def test_a_disk_that_fills_up_while_a_library_is_written_leaves_no_half_of_it(
    tmp_path, monkeypatch
):
    def full(_path, _content):
        raise OSError(28, "No space left on device")

    monkeypatch.setenv("FLEXCTL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(library_cache, "write_sealed", full)
    with pytest.warns(FlexctlWarning, match="No space left on device"):
        assert cached_library("full", answer) is None  # the temporary folder is full too

    assert list((tmp_path / "cache").iterdir()) == []
    assert "no folder to compile into" in backend()


def test_without_any_folder_plants_are_interpreted(tmp_path, monkeypatch, arm, plant):
    monkeypatch.setenv("FLEXCTL_CACHE", str(no_folder(tmp_path)))
    monkeypatch.setattr(library_cache, "_own_folder", lambda: no_folder(tmp_path))
    with pytest.warns(FlexctlWarning, match="not compiled, slower"):
        found = assemble_plant(arm, BasisChoice(order=1)).mass_matrix(STARTS)

    assert found == pytest.approx(replace(plant, interpreted=True).mass_matrix(STARTS))


FULL_DISK = (
    'case "$*" in *%s*) echo "ld: final link failed: No space left on device" >&2; exit 1;; esac'
)


def compiler_of(folder, script):
    """Make a C compiler of a line of shell before the real one."""
    path = folder / "cc"
    path.write_text(f'#!/bin/sh\n{script}\nexec {find_compiler()} "$@"\n')
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize(
    ("script", "told"),
    [
        (FULL_DISK % "cache", "cannot be used (No space left on device): compiled for this run"),
        (FULL_DISK % "", "nor a temporary folder (No space left on device): not compiled, slower"),
        ("echo broken >&2; exit 1", "/cc failed: broken: not compiled, slower"),
        ("kill -9 $$", "/cc failed: status -9: not compiled, slower"),
        ("exit 0", "/cc wrote nothing: not compiled, slower"),
        (r"printf 'caf\351' >&2; exit 1", "/cc failed: caf\ufffd: not compiled, slower"),
    ],
    ids=["full cache", "full disk", "broken", "killed", "writes nothing", "another alphabet"],
)
def test_a_compiler_that_fails_is_a_line_and_no_verdict(script, told, tmp_path, monkeypatch, plant):
    """A full disk met by the compiler made every design fail: "No design is stable"."""
    compiler = compiler_of(tmp_path, script)
    monkeypatch.setenv("FLEXCTL_CC", compiler)
    monkeypatch.setenv("FLEXCTL_CACHE", str(tmp_path / "cache"))
    with pytest.warns(FlexctlWarning) as said:
        found = [replace(plant, engine=e).mass_matrix(STARTS) for e in ("recursion", "lagrange")]

    assert [told in str(warning.message) for warning in said] == [True]
    for mass in found:
        assert mass == pytest.approx(replace(plant, interpreted=True).mass_matrix(STARTS))


def test_a_compiler_that_knows_no_avx_compiles_without_it(tmp_path, monkeypatch):
    refuses = 'case "$*" in *-mavx*) echo "unknown option" >&2; exit 1;; esac'
    monkeypatch.setattr(library_cache, "processor", lambda: frozenset({"avx"}))
    monkeypatch.setenv("FLEXCTL_CC", compiler_of(tmp_path, refuses))
    monkeypatch.setenv("FLEXCTL_CACHE", str(tmp_path / "cache"))
    assert library_of("without AVX", answer).parent == tmp_path / "cache"


def test_libraries_for_processors_with_and_without_avx_are_two(tmp_path, monkeypatch):
    monkeypatch.setenv("FLEXCTL_CACHE", str(tmp_path))
    names = set()
    for own in ("avx", "sse2"):
        monkeypatch.setattr(library_cache, "processor", lambda own=own: frozenset({own}))
        names.add(library_cache._library_name("two", "cc", ()))
    assert len(names) == 2


def test_libraries_that_were_compiled_ahead_are_found(tmp_path, monkeypatch):
    monkeypatch.setenv("FLEXCTL_CACHE", str(tmp_path))
    generate, asked = count_builds()
    build_ahead([("one", generate), ("two", generate), ("one", generate)])
    assert len(asked) == 2
    assert len(list(tmp_path.iterdir())) == 2  # nothing is left of the builds
    assert library_of("one", generate).is_file()
    assert library_of("two", generate).is_file()
    build_ahead([("one", generate), ("two", generate)])
    assert len(asked) == 2


@pytest.mark.parametrize("script", [FULL_DISK % "", "echo broken >&2; exit 1"])
def test_what_fails_ahead_is_told_when_it_is_needed(script, tmp_path, monkeypatch, recwarn):
    monkeypatch.setenv("FLEXCTL_CC", compiler_of(tmp_path, script))
    monkeypatch.setenv("FLEXCTL_CACHE", str(tmp_path / "cache"))
    build_ahead([("one", answer), ("two", answer)])
    assert list((tmp_path / "cache").iterdir()) == []
    assert not recwarn.list
    with pytest.warns(FlexctlWarning, match="not compiled, slower"):
        assert cached_library("one", answer) is None


def test_what_a_function_refuses_is_not_blamed_on_the_compiler():
    def refuse(_folder):
        raise ComputationError("no such motion")

    with pytest.raises(ComputationError, match="no such motion"):
        cached_library("refuses", refuse)
    assert "compiled C" in backend()


_BOTH = """
import sys
from pathlib import Path
from flexctl.plant.library_cache import build_ahead, cached_library

def generate(folder):
    source = folder / "answer.c"
    source.write_text("double answer(void) { return 42.0; }\\n")
    return source

if sys.argv[1] == "ahead":
    build_ahead([("the answer", generate)])
print(cached_library("the answer", generate))
"""


@pytest.mark.slow
@pytest.mark.parametrize("how", ["ahead", "when needed"])
def test_processes_that_need_the_same_library_compile_it_once(how, tmp_path):
    calls, compiler = tmp_path / "calls", tmp_path / "slow-cc"
    compiler.write_text(
        f'#!/bin/sh\ncase "$*" in *answer.c*) echo called >> {calls}; sleep 1;; esac\n'
        f'exec {find_compiler()} "$@"\n'
    )
    compiler.chmod(0o755)
    places = {"FLEXCTL_CACHE": str(tmp_path / "cache"), "FLEXCTL_CC": str(compiler)}
    words = [sys.executable, "-c", _BOTH, how]
    runs = [
        subprocess.Popen(words, env={**os.environ, **places}, stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    found = {run.communicate()[0] for run in runs}
    assert len(found) == 1
    assert Path(found.pop().strip()).parent == tmp_path / "cache"
    assert calls.read_text().split() == ["called"]
    assert not list((tmp_path / "cache").glob("*building*"))


def test_a_lock_that_a_stopped_process_holds_is_waited_for_no_longer_than_it_pays(
    tmp_path, monkeypatch
):
    monkeypatch.setenv("FLEXCTL_CACHE", str(tmp_path))
    monkeypatch.setattr(library_cache, "_PATIENCE", 0.2)
    generate, asked = count_builds()
    name = library_cache._library_name("the answer", find_compiler(), ())
    with library_cache._alone(tmp_path / name, patience=0.0) as held:
        assert held
        build_ahead([("the answer", generate)])
        assert not asked  # left to the other process
        assert cached_library("the answer", generate) == tmp_path / name
        assert len(asked) == 1


def test_the_lock_of_another_user_is_not_waited_for(tmp_path, monkeypatch, recwarn):
    monkeypatch.setenv("FLEXCTL_CACHE", str(tmp_path))
    generate, asked = count_builds()
    name = library_cache._library_name("the answer", find_compiler(), ())
    lock = tmp_path / f"flexctl-building-{Path(name).stem}.lock"
    lock.touch()
    own = Path.open

    def refuse(path, *how, **more):
        if path == lock:
            raise PermissionError(13, "Permission denied")
        return own(path, *how, **more)

    monkeypatch.setattr(Path, "open", refuse)
    build_ahead([("the answer", generate)])
    assert not asked  # as if it were held
    assert cached_library("the answer", generate) == tmp_path / name
    assert len(asked) == 1
    assert lock.exists()
    assert not recwarn.list


def test_compilers_run_on_the_cores_of_this_process_alone(tmp_path, monkeypatch):
    pools = []
    own = library_cache.ThreadPoolExecutor
    monkeypatch.setenv("FLEXCTL_CACHE", str(tmp_path))
    monkeypatch.setattr(os, "sched_getaffinity", lambda _process: {3}, raising=False)
    monkeypatch.setattr(library_cache, "ThreadPoolExecutor", lambda n: pools.append(n) or own(n))
    build_ahead([("the answer", answer)])
    assert pools == [1]
