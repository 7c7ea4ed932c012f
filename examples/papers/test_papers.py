"""`make papers`: claims as a table and as numbers, notes, figures; refusals in one line."""

import json

import pytest

import examples.papers.__main__ as papers
from examples.papers import FIGURES, claims_of, draw_figures, notes_of


@pytest.fixture
def few(monkeypatch, tmp_path, capsys):
    """few(words): what is printed and the folder of the first four claims of SM."""

    def call(*words):
        makers = claims_of("subudhi-morris")[:4]
        monkeypatch.setattr(papers, "claims_of", lambda _paper: makers)
        papers.main(["subudhi-morris", "--folder", str(tmp_path), *words])
        return capsys.readouterr().out, tmp_path / "subudhi-morris"

    return call


@pytest.mark.slow
def test_the_numbers_of_every_claim_are_written(few):
    _, folder = few("--no-figures")
    found = json.loads((folder / "claims.json").read_text())

    assert found["paper"] == "subudhi-morris"
    assert found["verdicts"] == {"holds": 1, "differs": 3, "cannot be checked": 0}
    keys = {"id", "paper", "ours", "verdict", "why", "numbers"}
    assert all(set(claim) == keys for claim in found["claims"])


@pytest.mark.slow
def test_a_person_reads_the_same_table_on_the_terminal_and_in_a_file(few):
    out, folder = few("--no-figures")
    table = (folder / "claims.txt").read_text()

    for text in (out, table):
        assert "equation 19" in text
        assert "4 claims: 1 hold, 3 differ, 0 cannot be checked" in text
    assert "notes.md" in out


def test_figures_are_drawn_beside_the_claims(few, monkeypatch):
    drawn = []
    monkeypatch.setattr(papers, "draw_figures", lambda *what: drawn.append(what))
    _, folder = few()

    assert drawn == [("subudhi-morris", folder)]


@pytest.mark.parametrize("paper", FIGURES)
def test_a_paper_has_claims_notes_and_modules_that_draw(paper, monkeypatch, tmp_path):
    drawn = []
    for module in FIGURES[paper]:
        path = f"examples.papers.{paper.replace('-', '_')}.{module}.draw"
        monkeypatch.setattr(path, lambda folder, path=path: drawn.append((path, folder)))
    draw_figures(paper, tmp_path)

    assert len(claims_of(paper)) == len({*claims_of(paper)}) > 0
    assert len(drawn) == len(FIGURES[paper])
    assert "# " in notes_of(paper).read_text()


def test_a_paper_that_is_not_there_is_refused(capsys):
    with pytest.raises(SystemExit, match="2"):
        papers.main(["subudhi-moris"])

    refusal = capsys.readouterr().err.splitlines()[-1]
    assert "PAPER: expected one of theodore-ghosal, subudhi-morris" in refusal
    assert "got 'subudhi-moris'" in refusal
