"""What every test needs: figures without a screen, small matrices without threads."""

import os
from contextlib import contextmanager
from fnmatch import fnmatchcase
from functools import cache

import pytest

os.environ.setdefault("MPLBACKEND", "Agg")
os.environ.pop("COLUMNS", None)  # tables as wide as a pipe has them
os.environ.pop("FORCE_COLOR", None)  # and without colours
os.environ.pop("NO_COLOR", None)
os.environ.pop("TTY_COMPATIBLE", None)
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy is imported
os.environ.setdefault("OMP_NUM_THREADS", "1")

from flexctl.control import design_controller
from flexctl.loop.closed_loop import close_loop
from flexctl.model.lookup import load_design, load_model
from flexctl.model.record import BasisChoice
from flexctl.plant import library_cache
from flexctl.simulation.simulation import simulate
from tests import arms, designs, loops


def pytest_itemcollected(item):
    """Mark as slow the cases of a parametrised test that `slow_but` does not name."""
    quick = item.get_closest_marker("slow_but")
    if quick and not any(fnmatchcase(item.callspec.id, pattern) for pattern in quick.args):
        item.add_marker(pytest.mark.slow)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Refuse a `slow_but` that leaves no case quick: its names have been forgotten."""
    quick = {}
    for item in items:
        if item.get_closest_marker("slow_but"):
            quick.setdefault(item.function, []).append(not item.get_closest_marker("slow"))
    for function, cases in quick.items():
        if len(cases) > 1 and not any(cases):
            raise pytest.UsageError(f"{function.__name__}: slow_but names none of its cases")


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory):
    """Compile into a folder of this session unless the caller names one: the user's is not met.

    Processes of the session share it.
    """
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    with pytest.MonkeyPatch.context() as patch:
        if "FLEXCTL_CACHE" not in os.environ:
            patch.setenv("FLEXCTL_CACHE", str(folder / "cache"))
        patch.delenv("FLEXCTL_CC", raising=False)
        yield


@pytest.fixture(scope="module")  # not of the session: tests of other files compile
def no_compiler():
    """Interpret what a file's tests make."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FLEXCTL_CC", "none")
        yield


@pytest.fixture
def nothing_compiled():
    """A context in which a library that is not in the cache fails the test."""

    def compiled(*_):
        raise AssertionError("a library was compiled")

    @contextmanager
    def forbidden():
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(library_cache, "compile_source", compiled)
            yield

    return forbidden


@pytest.fixture(scope="session")
def make():
    """Builders: of arms, designs, their common parts and loops."""
    return {
        "arm": arms.make_arm,
        "close": loops.close,
        "design": designs.make_design,
        "linear": loops.hand_made,
        "rigid": arms.rigid_two_link,
        "rigid-link": arms.rigid_link,
        "rrp": arms.rrp,
        "single": arms.single_link,
        "sliding": arms.sliding_arm,
        "two-link": arms.two_link,
        "weights": designs.WEIGHTS,
    }


@pytest.fixture(scope="session")
def plant_of():
    """plant_of(arm, kind, order): the arm in this discretisation, interpreted."""
    return arms.plant_of


@pytest.fixture(scope="session")
def stepper():
    """stepper(loop): the loop as SciPy sees it."""
    return loops.Stepper


@pytest.fixture(scope="session")
def rrp_arm():
    """The arm of [TG95] from the catalogue."""
    return load_model("theodore-ghosal-rrp")


@pytest.fixture(scope="session")
def rrp_loop(rrp_arm):
    """rrp_loop(design, design kind, truth kind, truth order): closed once per session."""

    @cache
    def build(name, basis="modes", kind="elements", order=4, drop_above=None):
        choice = BasisChoice(kind=basis, order=2)
        controller = design_controller(rrp_arm, load_design(name), choice)
        truth = BasisChoice(kind=kind, order=order, drop_above=drop_above)
        return close_loop(controller, rrp_arm, truth)

    return build


@pytest.fixture(scope="session")
def rrp_run(rrp_loop):
    """rrp_run(...): the run of `rrp_loop(...)`, simulated once per session."""
    return cache(lambda *choice: simulate(rrp_loop(*choice)))


@pytest.fixture(scope="session")
def two_link_loop(make):
    """two_link_loop(**tables): a nonlinear loop under gravity, the truth stiffer than modelled."""

    def build(method="decoupling", truth_order=1, **tables):
        tables.setdefault("basis", {"kind": "modes", "order": 1})
        gravity = (0.0, -9.81, 0.0)
        design = make["design"]([-1.2, 0.3], [-0.5, 0.9], method, **tables)
        links = make["two-link"](gravity, EI=40.0)
        truth = make["two-link"](gravity, EI=44.0)
        return make["close"](links, design, truth, order=truth_order)

    return build
