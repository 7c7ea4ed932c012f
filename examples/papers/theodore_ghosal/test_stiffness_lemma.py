"""What the lemma depends on, beside closed forms of a single link."""

import pytest

from examples.papers.theodore_ghosal import stiffness_lemma as lemma


@pytest.mark.slow
def test_the_lemma_tends_to_the_ratio_of_inertias():
    # 0.005315 m l^2 / 12^3 beside the hub's 0.1 kg m^2, and that times (J + I)/I
    J, I, stays = 0.1, 0.54 / 3 + 0.25, 0.00531508859875 * 0.54 / 12**3  # noqa: E741

    assert lemma.main() == pytest.approx((J + stays) / (I - stays) * I / J, rel=1e-9)


@pytest.mark.slow_but("0.0-8.0")
@pytest.mark.parametrize(("hub", "ratio"), [(0.0, 8.0), (0.1, 1.0)])
def test_the_growth_that_the_lemma_does_not_see_depends_on_the_hub_alike(hub, ratio):
    # from 4 to 8 elements: as one over the inertia that is left, or hardly
    coarse, fine = (lemma.growth(hub, elements).rate[0] for elements in (4, 8))

    assert coarse > 0
    assert fine / coarse == pytest.approx(ratio, rel=1e-3)


@pytest.mark.slow
def test_the_figure_is_drawn(tmp_path):
    lemma.draw(tmp_path)

    assert [path.name for path in tmp_path.iterdir()] == ["theodore-ghosal-lemma.png"]
