"""Pages: files that they show are read, commands have such options, links and pages exist."""

import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from flexctl.model.lookup import load_design, load_model
from flexctl.verdict import UNITS
from flexctl.view.cli import cli

ROOT = Path(__file__).parent.parent
LONG = (
    "README",
    "how-many-modes",
    "linear-model",
    "other-numbers",
    "own-controller",
    "sweeps",
    "synthesis",
    "tune",
)
PAGES = [
    *sorted(ROOT.glob("*.md")),
    *sorted(path for path in ROOT.glob("docs/**/*.md") if "generated" not in path.parts),
    *sorted(ROOT.glob("examples/**/*.md")),
    *sorted(ROOT.glob("tests/**/*.md")),
]
SOURCES = [
    path
    for folder in ("flexctl", "examples", "models", "designs", "tests", "benchmarks")
    for path in sorted((ROOT / folder).rglob("*"))
    if path.suffix in {".py", ".toml"}
]
FENCED = re.compile(r"^```(\w*)\n(.*?)^```", re.DOTALL | re.MULTILINE)


def text_of(path):
    return path.read_text(encoding="utf-8")


def name_of(path):
    return str(path.relative_to(ROOT))


def blocks(path, language):
    return [body for kind, body in FENCED.findall(text_of(path)) if kind == language]


@pytest.mark.parametrize(("load", "block"), [(load_model, 0), (load_design, 1), (load_design, 2)])
def test_the_documented_file_is_read(load, block, tmp_path):
    path = tmp_path / "documented.toml"
    text = blocks(ROOT / "docs" / "reference" / "files.md", "toml")[block]
    if load is load_model:  # the documented tip load stands before a second joint
        text = text.replace("{ joint2 = 1.57 }", "{}")
    path.write_text(text, encoding="utf-8")

    assert load(str(path)).summary == "..."


NAMED_FILES = [
    (page.name, body)
    for page in PAGES
    for body in blocks(page, "toml")
    if re.match(r"# [\w-]+\.toml\n", body)
]


@pytest.mark.parametrize(("page", "body"), NAMED_FILES)
def test_files_of_the_how_to_pages_are_read(page, body, tmp_path):
    path = tmp_path / "shown.toml"
    path.write_text(body, encoding="utf-8")
    load = load_design if "method =" in body else load_model

    assert load(str(path)).summary, page


def test_there_are_files_in_the_how_to_pages():
    assert len(NAMED_FILES) >= 3


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_prose_has_at_most_120_columns(page):
    # a table cannot be broken, nor can a line of code that is fenced
    prose = FENCED.sub("", text_of(page)).splitlines()
    assert [line for line in prose if len(line) > 120 and not line.startswith("|")] == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_relative_links_lead_to_files(page):
    links = re.findall(r"\]\(([^)\s]+)\)", FENCED.sub("", text_of(page)))
    relative = [link.partition("#")[0] for link in links if "://" not in link]
    assert [link for link in relative if link and not (page.parent / link).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_commands_of_a_page_have_the_options_that_it_shows(page):
    for body in blocks(page, "sh"):
        for line in body.replace("\\\n", " ").splitlines():
            words = shlex.split(line, comments=True)
            if words and Path(words[0]).name == "flexctl":
                shown = CliRunner().invoke(cli, [*words[1:], "--help"])
                assert shown.exit_code == 0, f"{line}: {shown.output}"


def test_pages_that_sources_name_exist():
    named = {
        (name_of(path), page)
        for path in SOURCES
        for page in re.findall(r"\b((?:docs|examples)/[\w/.-]+\.md)\b", text_of(path))
    }
    assert named
    assert [(path, page) for path, page in sorted(named) if not (ROOT / page).exists()] == []


def test_pages_that_pages_name_exist():
    named = {
        (name_of(path), page)
        for path in PAGES
        for page in re.findall(r"`((?:docs|examples|tests)/[\w/.-]+\.(?:md|py))`", text_of(path))
    }
    missing = [(path, page) for path, page in sorted(named) if not (ROOT / page).exists()]
    # the changelog names what has gone, CONTRIBUTING what is yet to be written
    assert [one for one in missing if one[0] not in {"CHANGELOG.md", "CONTRIBUTING.md"}] == []


def test_all_metrics_are_listed_by_their_names():
    text = (
        (ROOT / "docs" / "reference" / "numbers.md")
        .read_text(encoding="utf-8")
        .split("## Metrics")[1]
    )
    rows = re.findall(r"\| `([\w.]+\.)` \| (.*) \|", text)
    listed = [f"{group}{name}" for group, names in rows for name in re.findall(r"`(\w+)`", names)]

    assert sorted(listed) == sorted(UNITS)


def test_every_code_of_a_reason_is_in_the_reference_of_the_json():
    source = (ROOT / "flexctl" / "verdict" / "reasons.py").read_text("utf-8")
    codes = set(re.findall(r"``([a-z-]+)``", source))
    assert len(codes) == 19
    page = (ROOT / "docs" / "reference" / "json.md").read_text("utf-8")
    assert codes <= set(re.findall(r"`([a-z-]+)`", page))
    assert "`winner`" in page


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(
            page,
            id=name_of(page),
            marks=[pytest.mark.slow] if page.stem in LONG else [],
        )
        for page in PAGES
        if blocks(page, "python")
    ],
)
def test_python_of_a_page_runs_as_it_stands(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "page"}

    code = blocks(page, "python")

    for number, block in enumerate(code):
        exec(compile(block, f"{page.name}[{number}]", "exec"), names)

    written = {path.name for path in tmp_path.iterdir()}
    named = {
        one for block in code for one in re.findall(r'"([\w-]+\.(?:html|svg|png|json))"', block)
    }
    assert named <= written
