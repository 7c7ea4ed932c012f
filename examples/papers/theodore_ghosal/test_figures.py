"""Figures 4 to 8 of Theodore and Ghosal are drawn, and what they show."""

import pytest

from examples.papers.theodore_ghosal import figures


@pytest.mark.slow
def test_the_tip_settles_as_in_the_paper_with_modes_and_with_elements():
    assert figures.main() < 1e-4


@pytest.mark.slow  # compiles long
def test_the_figures_of_the_paper_are_drawn(tmp_path):
    figures.draw(tmp_path)

    drawn = sorted(path.name for path in tmp_path.iterdir())
    assert drawn == [f"theodore-ghosal-fig{k}.png" for k in range(4, 9)]
