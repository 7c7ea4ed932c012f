"""Faults from outside: kills, interrupts, full disks and caches that cannot be written.

Whatever happens, a command ends in words or not at all, a file is whole or not there, and what the
cache holds afterwards gives the numbers of an empty one. Moments and sizes are random, their seeds
fixed; machines differ in what a moment meets.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

pytest.importorskip("resource")  # limits of the size of files stand for full disks
COMPARE = ["compare", "single-link-hub", "hub-pd", "-m", "1", "--truth-modes", "1"]
SIMULATE = ["simulate", "single-link-hub", "hub-pd", "-m", "1", "--truth-modes", "1"]
# What a child of a background job ignores, a terminal's does not.
START = (
    "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    "from flexctl.__main__ import main; sys.exit(main())"
)
KILLS, INTERRUPTS = 50, 20


class Ground:
    """A folder with a cache of its own, in which commands are run."""

    def __init__(self, folder):
        self.folder, self.cache = folder, folder / "cache"
        self.seconds = 0.0

    def start(self, words, *, largest=None, cache=None):
        """Begin a command; `largest` limits the bytes of every file it writes."""
        size = f"({largest}, {largest})"
        limit = f"import resource; resource.setrlimit(resource.RLIMIT_FSIZE, {size})\n"
        return subprocess.Popen(
            [
                sys.executable,
                "-c",
                (limit if largest is not None else "") + START,
                *map(str, words),
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=os.environ | {"FLEXCTL_CACHE": str(cache or self.cache)},
            start_new_session=True,
        )

    def run(self, words, **how):
        """Run a command to its end; return status, output and errors."""
        with self.start(words, **how) as process:
            out, err = process.communicate(timeout=300)
            return process.returncode, out.decode(), err.decode()

    def strike(self, words, sign, moment, *, group=False):
        """Run a command and send it a signal after `moment` [s]; return status and errors.

        A terminal sends Ctrl-C to the whole `group`, compilers of the command among it.
        """
        with self.start(words) as process:
            time.sleep(moment)
            if group and process.poll() is None:
                os.killpg(process.pid, sign)
            process.send_signal(sign)
            begun = time.monotonic()
            _, err = process.communicate(timeout=300)
            self.seconds = time.monotonic() - begun
            return process.returncode, err.decode()


@pytest.fixture(scope="module")
def truth(tmp_path_factory):
    """What a command says on an empty cache, and how long it takes there [s]."""
    ground, begun = Ground(tmp_path_factory.mktemp("truth")), time.monotonic()
    status, out, err = ground.run([*COMPARE, "--json"])
    assert (status, err) == (0, "")
    return numbers(out), time.monotonic() - begun


@pytest.fixture(scope="module")
def warm(tmp_path_factory):
    """A cache that has what a run needs."""
    ground = Ground(tmp_path_factory.mktemp("warm"))
    assert ground.run(SIMULATE)[0] == 0
    return ground.cache


@pytest.fixture
def ground(tmp_path):
    return Ground(tmp_path)


def numbers(text):
    """Return what a comparison found, without what differs from run to run."""
    answer = json.loads(text)
    return {key: answer[key] for key in ("evaluations", "ranking", "verdict")}


def require_whole(path):
    """Refuse half an answer: a file is not there, or it can be read to its end."""
    if path.exists():
        assert numbers(path.read_text())["ranking"]


@pytest.mark.slow
def test_kills_leave_no_half_file_and_no_wrong_cache(ground, truth):
    """SIGKILL at random moments of commands that compile, on a cache that fills meanwhile."""
    expected, seconds = truth
    moments = np.random.default_rng(14).uniform(0.05, 1.2 * seconds, KILLS)
    out = ground.folder / "all.json"
    for k, moment in enumerate(moments):
        if k % 10 == 0:  # compile afresh, so that kills meet compilers too
            for path in ground.cache.glob("*.so"):
                path.unlink()
        out.unlink(missing_ok=True)
        status, err = ground.strike([*COMPARE, "--out", out], signal.SIGKILL, moment)
        assert status in {0, -signal.SIGKILL}
        assert err == ""
        require_whole(out)
    status, text, err = ground.run([*COMPARE, "--json"])

    assert (status, err) == (0, "")
    assert numbers(text) == expected


@pytest.mark.slow
@pytest.mark.parametrize("cold", [False, True], ids=["warm cache", "compiling"])
def test_interrupts_end_commands_in_one_line_with_130(cold, ground, truth):
    """By a terminal or by `kill`, with all files that a comparison writes."""
    expected, seconds = truth
    ground.run(COMPARE)  # warm: most of the time is then in CasADi and LAPACK
    begun = time.monotonic()
    ground.run(COMPARE)
    latest = seconds if cold else time.monotonic() - begun
    moments = np.random.default_rng(15).uniform(0.15, 0.9 * latest, INTERRUPTS // 2)
    out, page = ground.folder / "all.json", ground.folder / "all.html"
    words = [*COMPARE, "--out", out, "--report", page, "--json"]
    for k, moment in enumerate(moments):
        out.unlink(missing_ok=True)
        page.unlink(missing_ok=True)
        if cold:
            shutil.rmtree(ground.cache, ignore_errors=True)
        status, err = ground.strike(words, signal.SIGINT, moment, group=k % 2 == 0)
        if status == 0:  # it was done before the signal came
            assert err == ""
        else:
            assert status == 130
            assert err.startswith("flexctl: interrupted, ")
            assert err.count("\n") == 1
            assert ground.seconds < max(5.0, seconds)
            for path in (out, page):
                assert (str(path) in err) == path.exists()
        require_whole(out)
        assert not page.exists() or page.read_text().rstrip().endswith("</html>")
        assert not list(ground.folder.glob(".*"))
    assert numbers(ground.run([*COMPARE, "--json"])[1]) == expected


@pytest.mark.slow
@pytest.mark.parametrize("suffix", ["json", "nc", "csv", "svg", "png", "pdf", "gif"])
@pytest.mark.parametrize("largest", [0, 3000])
def test_a_full_disk_is_one_line_and_leaves_nothing(suffix, largest, ground, warm):
    """No file may grow: neither the answer nor libraries of the cache, which it has already."""
    option = {"json": "--out", "nc": "--out", "csv": "--out", "gif": "--animate"}
    path = ground.folder / f"run.{suffix}"
    words = [*SIMULATE, option.get(suffix, "--plot"), path]
    status, _, err = ground.run(words, largest=largest, cache=warm)

    assert (status, err) == (2, f"flexctl: {path}: cannot be written: File too large\n")
    assert list(ground.folder.iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize("largest", [0, 5000, 100_000])
def test_a_disk_that_fills_while_compiling_changes_no_number(largest, ground, truth):
    status, out, err = ground.run([*COMPARE, "--json"], largest=largest)
    answer = json.loads(out)

    assert status == 0
    warned = [line for line in err.splitlines() if line.startswith("flexctl: warning: ")]
    assert err.splitlines() == warned  # of the cache, or of the compiler, which writes files too
    assert all("compile cache" in line or "C compiler" in line for line in warned)
    assert len(warned) <= 2
    assert answer["ranking"] == truth[0]["ranking"]
    for found, expected in zip(answer["evaluations"], truth[0]["evaluations"], strict=True):
        assert found["tracking"]["tip_error_max"] == pytest.approx(
            expected["tracking"]["tip_error_max"], rel=1e-5
        )
    status, out, err = ground.run([*COMPARE, "--json"])  # the disk has room again

    assert (status, err) == (0, "")
    assert numbers(out) == truth[0]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["a file", "below a file", "read-only"])
def test_a_cache_that_cannot_be_written_is_one_line(kind, ground, truth):
    place = ground.folder / "place"
    if kind == "read-only":
        place.mkdir()
        place.chmod(0o500)
        if os.access(place, os.W_OK):
            place.rmdir()
            place = ground.folder.parents[-1] / "proc" / "flexctl"  # root cannot write there
    else:
        place.write_text("no folder")
        place = place / "cache" if kind == "below a file" else place
    status, out, err = ground.run([*COMPARE, "--json"], cache=place)

    assert status == 0
    assert err.startswith(f"flexctl: warning: compile cache {place}: cannot be used (")
    assert err.count("\n") == 1
    assert numbers(out) == truth[0]


@pytest.mark.slow
def test_commands_that_compile_the_same_at_once_say_the_same(ground, truth):
    processes = [ground.start([*COMPARE, "--json"]) for _ in range(3)]
    answers = [process.communicate(timeout=600) for process in processes]

    assert [process.returncode for process in processes] == [0, 0, 0]
    assert [err for _, err in answers] == [b"", b"", b""]
    for out, _ in answers:
        assert numbers(out) == truth[0]
    assert {path.suffix for path in ground.cache.iterdir()} <= {".so", ".casadi"}


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["cut", "flipped", "empty"])
def test_a_cache_that_a_disk_has_damaged_changes_no_number(fault, ground, truth):
    ground.run(COMPARE)
    libraries = sorted(ground.cache.glob("*.so"))
    whole = {path: path.read_bytes() for path in libraries}
    for path, code in whole.items():
        middle = len(code) // 2
        flipped = code[:middle] + bytes([code[middle] ^ 16]) + code[middle + 1 :]
        path.write_bytes({"cut": code[:middle], "flipped": flipped}.get(fault, b""))
    status, out, err = ground.run([*COMPARE, "--json"])

    assert (status, err) == (0, "")
    assert numbers(out) == truth[0]
