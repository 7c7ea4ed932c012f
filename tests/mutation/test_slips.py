"""The slips that are tried are those a tired author makes, and the report counts them honestly."""

import ast
import runpy
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def tools():
    """The modules of this folder, which is no package."""
    before = dict(sys.modules)
    sys.path.insert(0, str(HERE))
    try:
        return {
            name: runpy.run_path(str(HERE / f"{name}.py")) for name in ("slips", "report", "table")
        }
    finally:
        sys.path.remove(str(HERE))
        for name in set(sys.modules) - set(before):
            if name in ("slips", "run", "report", "table"):
                del sys.modules[name]


def made(tools, text):
    """Every source that one slip makes of a text."""
    sources = []
    for label in [slip.label for slip in tools["slips"]["find_slips"](ast.parse(text))]:
        tree = ast.parse(text)
        slip = next(s for s in tools["slips"]["find_slips"](tree) if s.label == label)
        sources.append(ast.unparse(slip.apply(tree)))
    return sources


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x = a + b", ["x = a - b", "x = a", "x = b"]),
        ("x = a * b", ["x = a / b"]),
        ("x = a < b", ["x = a <= b", "x = a >= b"]),
        ("x = min(a)", ["x = max(a)"]),
        ("x = np.abs(a).max()", ["x = np.abs(a).min()", "x = a.max()"]),
        ("x = -a", ["x = a"]),
        ("x = a[0]", ["x = a[1]"]),
        ("x = 1000.0 * a", ["x = 2000.0 * a", "x = 1000.0 / a"]),
        ("x = f'{a} mm'", ["x = f'{a} m'"]),
        ("def f():\n    return (a, b)", ["def f():\n    return (b, a)"]),
        ("x = [*a, *b]", ["x = [*b, *a]", "x = [*b]", "x = [*a]"]),
        ("if a:\n    raise E", ["if a:\n    pass", "if not a:\n    raise E"]),
        ("x = a and b", ["x = a or b"]),
        ("x = a if b else c", ["x = c if b else a"]),
        ("x = read('energy')", ["x = read('energy_')"]),
        ("x = Number[Ge(0)]", ["x = Number[Gt(0)]"]),
    ],
)
def test_slips_of_a_line(tools, text, expected):
    assert set(expected) <= set(made(tools, text))


@pytest.mark.parametrize(
    "text",
    [
        '"""A module."""',
        "import a",
        "@dataclass(frozen=True)\nclass A:\n    x: int",
        "def f(x: int = a) -> list[int]:\n    '''One.'''",
        "__all__ = ['a', 'b']",
        "x = f'{a:.3g}'",
        "x = say(label='energy')",
        "x = zip(a, b, strict=True)",
    ],
)
def test_what_does_not_run_or_is_free_is_left_alone(tools, text):
    assert made(tools, text) == []


def test_alike_slips_have_labels_of_their_own(tools):
    labels = [s.label for s in tools["slips"]["find_slips"](ast.parse("x = a < b\ny = a < b"))]
    assert len(set(labels)) == len(labels) == 4


def test_what_timed_out_is_not_caught(tools):
    outcome = tools["report"]["Outcome"](file="a.py", total=5, known={"b": "why"})
    slips = tools["slips"]["find_slips"](ast.parse("x = a < b\ny = a < b"))
    for slip, result in zip(slips, ("caught", "survived", "timed out", "caught"), strict=True):
        outcome.add(slip, result)
    said = tools["report"]["summary"]([outcome])

    assert "50.0 % (2 of 4 caught, 1 timed out" in said
    assert "survived: a.py:1" in said
    assert "timed out: a.py:2" in said
    assert "interval" not in said


def test_a_draw_has_an_interval_and_no_equivalent_slips(tools):
    slips = tools["slips"]["find_slips"](
        ast.parse("\n".join(f"x{k} = a < b{k}" for k in range(20)))
    )
    known = {slips[0].label: "why"}
    outcome = tools["report"]["Outcome"](file="a.py", total=len(slips), known=known)
    drawn = outcome.sample(slips, 10, 3, "")
    assert len(drawn) == 10
    assert drawn == outcome.sample(slips, 10, 3, "")
    assert len(outcome.sample(slips, None, 0, "")) == 39
    for slip in drawn:
        outcome.add(slip, "caught")
    assert "95 % interval 72 to 100 %" in tools["report"]["summary"]([outcome])


def test_the_table_names_files_that_exist(tools):
    root = HERE.parents[1]
    for file, tests in tools["table"]["witnesses"]().items():
        assert (root / file).is_file()
        named = [test.partition("::")[0] for test in tests if test.startswith("tests/")]
        assert all((root / name).is_file() for name in named)
        assert all(tools["table"]["equivalents"](file).values())
