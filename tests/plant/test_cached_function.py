"""Functions kept in CasADi's own form: read by the next process, never a broken one."""

import casadi as ca
import pytest

from flexctl.plant import library_cache
from flexctl.plant.compilation import cached_function


@pytest.fixture
def square(tmp_path, monkeypatch):
    """Return a function that is cached under its key, and the number of times it was made."""
    monkeypatch.setenv("FLEXCTL_CACHE", str(tmp_path / "cache"))
    made = []

    def make():
        made.append(1)
        x = ca.SX.sym("x")
        return ca.Function("square", [x], [x**2])

    return lambda key="key": cached_function(key, make), made


def test_a_function_is_made_once(square):
    cached, made = square
    assert [float(cached()(3)) for _ in range(3)] == [9.0] * 3
    assert len(made) == 1
    cached("another key")
    assert len(made) == 2


def test_a_function_that_was_read_takes_symbols_and_has_derivatives(square):
    cached, _ = square
    cached()
    x = ca.SX.sym("x")
    assert float(ca.evalf(ca.substitute(ca.jacobian(cached()(x), x), x, 3))) == 6.0


@pytest.mark.parametrize("whole", [b"", b"no function", None])
def test_a_broken_file_is_made_anew(square, whole):
    cached, made = square
    cached()
    (file,) = library_cache.cache_folder().iterdir()
    file.write_bytes(file.read_bytes()[:-7] if whole is None else whole)

    assert float(cached()(3)) == 9.0
    assert len(made) == 2
    assert float(cached()(3)) == 9.0
    assert len(made) == 2


def test_without_a_cache_it_is_made(square, tmp_path, monkeypatch):
    cached, made = square
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("FLEXCTL_CACHE", str(tmp_path / "file"))
    assert [float(cached()(3)) for _ in range(2)] == [9.0] * 2
    assert len(made) == 2
