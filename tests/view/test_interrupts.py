"""Ctrl-C and SIGTERM end a command even where a library loses what they raise."""

import signal
import subprocess
import sys
import time

import pytest

# What a child of a background job ignores, a terminal's does not.
BEGIN = """
import os, signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)
import flexctl.view.commands.inspection as room
from flexctl.view import interrupts
interrupts.PATIENCE = 0.2
def work(*_):
    print("running", flush=True)
"""
END = """
room.inspect_model = work
from flexctl.__main__ import main
sys.argv = ["flexctl", "inspect", "single-link-hub"]
sys.exit(main())
"""
FAULTS = {
    "raised": "    time.sleep(30)\n",
    "lost once": """
    try:
        time.sleep(30)
    except KeyboardInterrupt:
        time.sleep(30)
""",
    "lost always": """
    while True:
        try:
            time.sleep(30)
        except KeyboardInterrupt:
            pass
""",
    "replaced by an exception of a library": """
    try:
        time.sleep(30)
    except KeyboardInterrupt as error:
        raise SystemError("returned a result with an exception set") from error
""",
    "in machine code": """
    import numpy as np
    np.linalg.eig(np.random.default_rng(1).random((3000, 3000)))  # half a minute without Python
""",
}


def interrupted(code, presses=1, by=signal.SIGINT, pause=0.01):
    """Run a command, interrupt it so many times, and return status, errors and seconds."""
    words = [sys.executable, "-c", BEGIN + code + END]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.readline()
        time.sleep(0.05)
        begun = time.monotonic()
        for _ in range(presses):
            process.send_signal(by)
            time.sleep(pause)
        _, err = process.communicate(timeout=30)
        return process.returncode, err.decode(), time.monotonic() - begun


@pytest.mark.slow_but("lost always")
@pytest.mark.parametrize("fault", FAULTS)
def test_an_interrupt_ends_the_command_however_it_is_lost(fault):
    status, err, seconds = interrupted(FAULTS[fault])

    assert (status, err) == (130, "flexctl: interrupted, nothing written\n")
    assert seconds < 20  # of the 30 that it would work on


@pytest.mark.slow_but("lost once-pass")
@pytest.mark.parametrize("ignored", ["pass", "signal.signal(signal.SIGINT, signal.SIG_IGN)"])
@pytest.mark.parametrize("fault", ["raised", "lost once", "lost always", "in machine code"])
def test_sigterm_is_an_interrupt_where_a_job_ignores_those_of_the_terminal(fault, ignored):
    status, err, seconds = interrupted(f"{FAULTS[fault]}{ignored}\n", by=signal.SIGTERM)

    assert (status, err) == (130, "flexctl: interrupted, nothing written\n")
    assert seconds < 20


def test_signals_of_other_handlers_end_nothing():
    code = """
    signal.signal(signal.SIGALRM, lambda *_: None)
    os.kill(os.getpid(), signal.SIGALRM)
    time.sleep(1.0)
    os._exit(7)
"""
    status, err, _ = interrupted(code, presses=0)

    assert (status, err) == (7, "")


def test_a_program_that_hears_interrupts_itself_keeps_them(flexctl):
    own, seen = lambda *_: None, []
    before = signal.signal(signal.SIGINT, own)
    try:
        flexctl("list")
        seen.append(signal.getsignal(signal.SIGINT))
    finally:
        signal.signal(signal.SIGINT, before)
    assert seen == [own]


# The search has ended, and what it found is verified.
HEEDED = """
    try:
        time.sleep(30)
    except KeyboardInterrupt:
        interrupts.heeded()
"""


def test_a_second_interrupt_that_is_lost_comes_again():
    code = """
    try:
        time.sleep(30)
    except KeyboardInterrupt:
        for _ in range(200):
            time.sleep(0.1)
"""
    status, err, seconds = interrupted(HEEDED + code, presses=2, pause=0.5)

    assert (status, err) == (130, "flexctl: interrupted, nothing written\n")
    assert seconds < 10


@pytest.mark.slow_but("3-130")
@pytest.mark.parametrize(("presses", "status"), [(2, 7), (3, 130)])
def test_after_one_that_is_heeded_a_third_interrupt_ends_at_once_but_no_second(presses, status):
    """The second may come in machine code, and what is verified by then is to be written."""
    code = """
    end = time.monotonic() + 4.0
    while time.monotonic() < end:
        try:
            time.sleep(0.1)
        except KeyboardInterrupt:
            pass
    os._exit(7)
"""
    found, _, seconds = interrupted(HEEDED + code, presses=presses, pause=1.0)

    assert found == status
    assert seconds < 10


@pytest.mark.slow
@pytest.mark.parametrize(("presses", "status"), [(1, 7), (2, 130)])
def test_the_first_interrupt_waits_for_machine_code_where_there_is_something_to_keep(
    presses, status
):
    code = """
    import numpy as np
    interrupts.keep()
    try:
        np.linalg.eigvals(np.random.default_rng(1).random((2200, 2200)))  # some seconds
        time.sleep(1.0)
    except KeyboardInterrupt:
        os._exit(7)
    os._exit(8)
"""
    found, err, _ = interrupted(code, presses=presses, pause=1.0)

    assert found == status
    assert "ends after the run in progress" in err


@pytest.mark.slow
def test_no_more_than_one_interrupt_waits_however_often_results_are_kept():
    code = """
    for _ in range(250):
        try:
            interrupts.keep()
            time.sleep(0.1)
        except KeyboardInterrupt:
            pass
"""
    status, err, seconds = interrupted(code, presses=2, pause=1.0)

    assert (status, err.count("ends after the run")) == (130, 1)
    assert seconds < 10


@pytest.mark.slow
def test_an_impatient_user_gets_no_traceback():
    status, err, _ = interrupted(FAULTS["raised"], presses=5)

    assert (status, err) == (130, "flexctl: interrupted, nothing written\n")


@pytest.mark.slow
def test_an_end_that_unwinds_nothing_removes_what_was_being_written(tmp_path):
    path = tmp_path / "run.csv"
    code = f"""
    from pathlib import Path
    from flexctl.model.files import replacing_file
    with replacing_file(Path({str(path)!r})) as draft:
        draft.write_text("half")
        while True:
            try:
                time.sleep(30)
            except KeyboardInterrupt:
                pass
"""
    status, _, _ = interrupted(code)

    assert status == 130
    assert list(tmp_path.iterdir()) == []


def test_a_command_that_ends_leaves_interrupts_as_they_were(flexctl):
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        flexctl("list")
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
        assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
        assert signal.set_wakeup_fd(-1) == -1
    finally:
        signal.signal(signal.SIGINT, before)
