"""What every test needs: figures without a screen, small matrices without threads."""

import os
from fnmatch import fnmatchcase

import pytest

os.environ.setdefault("MPLBACKEND", "Agg")
os.environ.pop("COLUMNS", None)  # tables as wide as a pipe has them
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy is imported
os.environ.setdefault("OMP_NUM_THREADS", "1")


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
