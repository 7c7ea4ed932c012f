"""Tasks done side by side give what they give one after another."""

import multiprocessing
import os
import subprocess
import sys
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest
from threadpoolctl import ThreadpoolController

import flexctl
from flexctl import parallel
from flexctl.errors import FlexctlWarning, InputError
from flexctl.parallel import in_parallel, on_one_thread

pytestmark = pytest.mark.usefixtures("two_cores")


@pytest.fixture
def two_cores(monkeypatch):
    monkeypatch.setattr(parallel, "_cores", lambda: 2)


def test_results_come_in_the_order_of_the_tasks_from_two_processes():
    tasks = [partial(lambda k: (k, os.getpid()), k) for k in range(5)]
    numbers, processes = zip(*in_parallel(tasks), strict=True)
    assert numbers == (0, 1, 2, 3, 4)
    assert processes[0] == os.getpid() != processes[1]
    assert set(processes) == set(processes[:2])


def test_who_is_done_takes_the_next_task():
    def wait():
        time.sleep(1.0)
        return os.getpid()

    slow, *others = in_parallel([wait, *6 * [os.getpid]])
    assert slow == os.getpid()
    assert len(set(others)) == 1
    assert others[0] != slow


def test_without_semaphores_tasks_are_dealt_out_in_turn(monkeypatch):
    def no_more(*_):
        raise OSError("Function not implemented")

    monkeypatch.setattr(multiprocessing.get_context("fork"), "Value", no_more, raising=False)
    processes = in_parallel([os.getpid] * 5)
    assert processes[0] == processes[2] == processes[4] == os.getpid()
    assert processes[1] == processes[3] != os.getpid()


def test_nothing_more_is_begun_after_an_error(tmp_path):
    def fail():
        raise InputError("expected more, got less")

    def work(k):
        (tmp_path / str(k)).touch()
        time.sleep(0.2)

    with pytest.raises(InputError, match="expected more, got less"):
        in_parallel([fail, *(partial(work, k) for k in range(20))])
    assert len(list(tmp_path.iterdir())) <= 2


def test_no_task_and_a_single_one():
    assert in_parallel([]) == []
    assert in_parallel([os.getpid]) == [os.getpid()]


@pytest.mark.parametrize("failing", [[0], [1], [0, 1], [1, 2], [2, 3]])
def test_an_error_is_that_of_the_first_task_that_has_one(failing):
    def fail(k):
        raise InputError(f"task {k}: expected more, got less")

    tasks = [partial(fail, k) if k in failing else os.getpid for k in range(4)]
    with pytest.raises(InputError, match=f"task {failing[0]}: expected more, got less"):
        in_parallel(tasks)


def test_a_warning_is_given_once_and_here():
    def warned():
        warnings.warn("no compiler", FlexctlWarning, stacklevel=1)
        return 1

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert in_parallel([lambda: 0, warned]) == [0, 1]
    assert [(one.category, str(one.message)) for one in caught] == [(FlexctlWarning, "no compiler")]


def test_what_cannot_be_sent_or_dies_is_done_here():
    here = os.getpid()
    unsendable, deadly = (
        (lambda: (os.getpid, lambda: 0)),
        (lambda: os.getpid() == here or os._exit(1)),
    )
    assert in_parallel([os.getpid, unsendable])[1][0]() == here
    assert in_parallel([os.getpid, deadly]) == [here, True]


def test_a_fork_that_dies_while_it_sends_is_replaced():
    class Deadly:
        def __reduce__(self):
            os._exit(1)

    here = os.getpid()
    tasks = [os.getpid, lambda: os.getpid() if os.getpid() == here else [bytes(10**6), Deadly()]]
    assert in_parallel(tasks) == [here, here]


@pytest.mark.parametrize("missing", ["fork", "pipe"])
def test_without_further_processes_or_files_all_is_done_here(monkeypatch, missing):
    def no_more(*_):
        raise BlockingIOError("Resource temporarily unavailable")

    monkeypatch.setattr(os, missing, no_more)
    assert in_parallel([os.getpid] * 3) == [os.getpid()] * 3


def test_a_fork_does_not_fork(monkeypatch):
    monkeypatch.undo()
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "1")
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    monkeypatch.setattr(threading, "enumerate", lambda: [threading.current_thread()])
    inner = partial(in_parallel, [os.getpid, os.getpid])
    here, there = in_parallel([inner, inner])
    assert here[0] == os.getpid() != here[1]
    assert there[0] == there[1] != os.getpid()


def test_no_fork_beside_other_threads_at_work(monkeypatch):
    monkeypatch.undo()
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "1")
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(in_parallel, [os.getpid] * 2).result() == [os.getpid()] * 2
        assert in_parallel([os.getpid] * 2) == [os.getpid()] * 2


def test_no_fork_beside_threads_of_linear_algebra(monkeypatch):
    monkeypatch.undo()
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    assert in_parallel([os.getpid, os.getpid]) == [os.getpid()] * 2


@pytest.fixture
def two_threads(monkeypatch):
    """Number of threads of linear algebra, which are two, unless a function changes that."""
    for name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    # tests beside these may have loaded OpenMP, whose threads are its own
    controller = ThreadpoolController().select(user_api="blas")
    with controller.limit(limits=2):
        yield lambda: {one["num_threads"] for one in controller.info()}


def test_linear_algebra_has_one_thread_within_a_function_and_as_many_as_before_later(
    two_threads,
):
    assert two_threads() == {2}
    assert on_one_thread(two_threads)() == {1}
    with pytest.raises(ZeroDivisionError):
        on_one_thread(lambda: 1 / 0)()
    assert two_threads() == {2}


def test_the_number_of_threads_that_the_environment_states_stays(two_threads, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    assert on_one_thread(two_threads)() == {2}


def test_a_comparison_runs_on_one_thread(two_threads):
    seen = list[set[int]]()
    flexctl.compare("single-link-hub", "hub-pd", progress=lambda _: seen.append(two_threads()))
    assert seen[0] == seen[-1] == {1}
    assert two_threads() == {2}


def test_a_fork_ends_with_the_process_that_began_it():
    code = """
import os, time
from flexctl import parallel
parallel._cores = lambda: 2
parallel.in_parallel([lambda: os.kill(os.getpid(), 9), lambda: time.sleep(600)])
"""
    done = subprocess.run(
        [sys.executable, "-c", code], check=False, stdout=subprocess.PIPE, timeout=60
    )
    assert done.returncode == -9  # and nobody keeps the pipe open
