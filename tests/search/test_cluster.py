"""Sweeps on a Dask cluster: the same table, whatever becomes of its workers and its scheduler."""

import contextlib
import json
import re
import signal
import socket
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from flexctl.errors import ComputationError, FlexctlWarning, InputError
from flexctl.model import BasisChoice
from flexctl.plant import source_digest
from flexctl.search import cluster
from flexctl.search.cluster import Cluster, judge_chunk
from flexctl.search.sweeps import sweep

pytest.importorskip("distributed")

TRUTH = BasisChoice(kind="elements", order=2)
STARTS = 60.0  # s in which a process starts on a busy machine


class Machines:
    """A scheduler and workers on this machine."""

    def __init__(self, folder, stack):
        self._folder, self._stack = folder, stack
        file = folder / "scheduler.json"
        self.scheduler = self._start(
            "scheduler", "--port", "0", "--host", "127.0.0.1", "--scheduler-file", str(file)
        )
        self.address = ""
        end = time.monotonic() + STARTS
        while not self.address and time.monotonic() < end:
            time.sleep(0.05)
            with contextlib.suppress(OSError, ValueError):  # not there, or not whole yet
                self.address = json.loads(file.read_text())["address"]
        assert self.address

    def worker(self, *words):
        return self._start("worker", self.address, "--nthreads", "1", *words)

    def _start(self, kind, *words):
        command = [sys.executable, "-m", f"distributed.cli.dask_{kind}", *words, "--no-dashboard"]
        log = self._stack.enter_context((self._folder / f"{kind}.log").open("ab"))
        process = subprocess.Popen(command, stdout=log, stderr=log, cwd=self._folder)
        self._stack.callback(_end, process)
        return process


def _end(process):
    process.terminate()
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


@pytest.fixture
def machines(tmp_path):
    with contextlib.ExitStack() as stack:
        yield Machines(tmp_path, stack)


def _sweep(n, **how):
    return sweep(
        "single-link-hub", "hub-pd", {"gains.Gp": f"*0.5:*2:{n}"}, truth_basis=TRUTH, **how
    )


def _assert_same(one, two):
    assert one.done.all()
    assert list(one.metrics) == list(two.metrics)
    assert one.failed == two.failed
    for key, values in one.metrics.items():
        np.testing.assert_array_equal(values, two.metrics[key])


@pytest.mark.slow
def test_a_worker_of_a_cluster_gives_the_same_table(machines, tmp_path):
    machines.worker("--no-nanny")
    how = {"metrics": "linear", "ledger": tmp_path / "sweep.db"}
    found = _sweep(250, scheduler=machines.address, **how)
    assert (found.jobs, found.resumed) == (1, 0)
    _assert_same(found, _sweep(250, metrics="linear", jobs=1))
    again = _sweep(250, scheduler=machines.address, **how)
    assert (again.jobs, again.resumed) == (0, 250)


@pytest.mark.parametrize(
    "address", ["tcp:/x", "localhost", "localhost:", "tcp://:8786", "", "a b:1", "tcp://h:8786/x y"]
)
def test_what_is_no_address_is_refused(address):
    with pytest.raises(InputError, match=r"expected an address such as tcp://host:8786, got '"):
        _sweep(2, scheduler=address)


@pytest.mark.parametrize("address", ["tcp://10.0.0.1:8786", "host.org:1", "tls://[fe80::1]:8786"])
def test_what_is_an_address_is_taken(address):
    assert Cluster(address).address == address


def test_processes_and_a_scheduler_exclude_each_other():
    with pytest.raises(InputError, match="jobs: expected none with a scheduler, got 2"):
        _sweep(2, scheduler="tcp://127.0.0.1:1", jobs=2)


def test_without_dask_it_is_said_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(InputError, match=re.escape("pip install 'flexctl[cluster]'")):
        _sweep(2, scheduler="tcp://127.0.0.1:1")


@contextlib.contextmanager
def _listener(greeting):
    with socket.create_server(("127.0.0.1", 0)) as server:
        kept = []

        def serve():
            with contextlib.suppress(OSError):
                while True:
                    kept.append(server.accept()[0])
                    kept[-1].sendall(greeting)

        threading.Thread(target=serve, daemon=True).start()
        yield f"tcp://127.0.0.1:{server.getsockname()[1]}"
        server.shutdown(socket.SHUT_RDWR)
        for one in kept:
            one.close()


@pytest.mark.slow_but("SSH-2.0*")
@pytest.mark.parametrize(
    ("greeting", "got"), [(b"", "no answer"), (b"SSH-2.0-OpenSSH_9.2\r\n", "another service")]
)
def test_what_is_no_scheduler_is_refused_in_time(monkeypatch, tmp_path, greeting, got):
    monkeypatch.setattr(cluster, "_PATIENCE", 2.0)
    file = tmp_path / "sweep.db"
    _sweep(2, metrics="linear", jobs=1, ledger=file)
    begin = time.monotonic()
    with (
        _listener(greeting) as address,
        pytest.raises(InputError, match=f"{address}: expected a Dask scheduler, got {got}"),
    ):
        _sweep(3, metrics="linear", scheduler=address, ledger=file)
    assert time.monotonic() - begin < 10
    assert _sweep(2, metrics="linear", jobs=1, ledger=file).resumed == 2


def test_where_nothing_listens_it_is_said(monkeypatch):
    monkeypatch.setattr(cluster, "_PATIENCE", 2.0)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    # the second if the time runs out within an attempt
    said = "expected a Dask scheduler, got (Connection refused|no answer)"
    with pytest.raises(InputError, match=said):
        _sweep(2, scheduler=f"tcp://127.0.0.1:{port}")


class _Process:
    """What a task asks of the worker that it runs in."""

    def __init__(self, nthreads):
        self.state = self
        self.nthreads = nthreads


def test_a_worker_with_another_version_or_several_threads_refuses(monkeypatch):
    with pytest.raises(InputError, match="expected flexctl and CasADi as here"):
        judge_chunk("another digest", b"", [])
    monkeypatch.setattr("distributed.get_worker", lambda: _Process(4))
    with pytest.raises(InputError, match=r"--nthreads 1 --nworkers 4\), got 4"):
        judge_chunk(source_digest(), b"", [])


def test_a_worker_whose_compiler_is_not_there_refuses(monkeypatch):
    monkeypatch.setattr("distributed.get_worker", lambda: _Process(1))
    monkeypatch.setenv("FLEXCTL_CC", "gcc-99")
    with pytest.raises(InputError, match=r"worker .*: FLEXCTL_CC: expected a C compiler or none"):
        judge_chunk(source_digest(), b"", [])


def test_an_error_that_is_no_result_reaches_the_client_as_text(monkeypatch):
    monkeypatch.setattr("distributed.get_worker", lambda: _Process(1))
    with pytest.raises(ComputationError, match=r"worker .*: internal error, EOFError: Ran out"):
        judge_chunk(source_digest(), b"", [])


@pytest.mark.slow
@pytest.mark.parametrize(("n", "metrics"), [(1000, "linear"), (100, "full")])
def test_a_worker_that_is_killed_costs_its_task_only(machines, n, metrics):
    doomed, _ = machines.worker("--no-nanny"), machines.worker("--no-nanny")
    left = []

    def kill(done, of, _seconds):
        if not left:
            doomed.send_signal(signal.SIGKILL)
            left.append(of - done)

    found = _sweep(n, metrics=metrics, scheduler=machines.address, progress=kill)
    assert left[0] > n / 2
    _assert_same(found, _sweep(n, metrics=metrics, jobs=1))


@pytest.mark.slow
def test_a_scheduler_that_is_killed_loses_nothing_that_is_judged(machines, tmp_path):
    machines.worker("--no-nanny")
    how = {"metrics": "linear", "ledger": tmp_path / "sweep.db"}

    def kill(_done, _of, _seconds):
        machines.scheduler.send_signal(signal.SIGKILL)

    with pytest.warns(FlexctlWarning, match="the scheduler is gone; what is judged is kept"):
        found = _sweep(1000, scheduler=machines.address, progress=kill, **how)
    assert 200 <= found.done.sum() < 1000
    assert found.interrupted
    again = _sweep(1000, jobs=1, **how)
    assert again.resumed == found.done.sum()
    _assert_same(again, _sweep(1000, metrics="linear", jobs=1))


_KILLER = """
import os
from flexctl.search.study import Study
def judge(self, k, values, own=Study.judge):
    return os._exit(9) if k == 250 else own(self, k, values)
Study.judge = judge
"""


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*no worker in 10 s")  # a busy machine restarts them late
def test_a_point_that_kills_its_workers_is_left_to_another_run(machines, tmp_path):
    killer = tmp_path / "killer.py"
    killer.write_text(_KILLER)
    machines.worker("--nworkers", "2", "--preload", str(killer))
    how = {"metrics": "linear", "ledger": tmp_path / "sweep.db"}
    with pytest.warns(FlexctlWarning, match="points are not judged, as every worker"):
        found = _sweep(700, scheduler=machines.address, **how)
    assert not found.done[200:400].any()
    assert found.done.any()
    assert not found.failed
    _assert_same(_sweep(700, jobs=1, **how), _sweep(700, metrics="linear", jobs=1))


@pytest.mark.slow
def test_a_worker_without_flexctl_or_compiler_is_named(machines, tmp_path, monkeypatch):
    bare = tmp_path / "bare"
    bare.mkdir()
    (bare / "flexctl.py").write_text("raise ImportError('none here')")
    with monkeypatch.context() as patch:
        patch.setenv("PYTHONPATH", str(bare))
        unfit = machines.worker("--no-nanny")
    with pytest.raises(InputError, match="expected workers with flexctl as here, got one without"):
        _sweep(200, metrics="linear", scheduler=machines.address)
    _end(unfit)

    with monkeypatch.context() as patch:
        patch.setenv("FLEXCTL_CC", "none")
        machines.worker("--no-nanny")
    with pytest.warns(FlexctlWarning, match=r"worker .*: not compiled \(FLEXCTL_CC=none\)"):
        found = _sweep(200, metrics="linear", scheduler=machines.address)
    _assert_same(found, _sweep(200, metrics="linear", jobs=1))


@pytest.mark.slow
def test_without_workers_one_is_waited_for(machines, monkeypatch):
    monkeypatch.setattr(cluster, "_PATIENCE", 3.0)
    late = threading.Timer(8.0, machines.worker, ["--no-nanny"])
    late.start()
    with pytest.warns(FlexctlWarning, match="no worker in 3 s, waiting for one"):
        found = _sweep(10, metrics="linear", scheduler=machines.address)
    late.join()
    _assert_same(found, _sweep(10, metrics="linear", jobs=1))
