"""A stiffness assumed part by part, against controllers rebuilt with that stiffness."""

import numpy as np
import pytest

from flexctl.errors import InputError
from flexctl.model.lookup import load_design, load_model
from flexctl.plant.plant import assemble_plant
from flexctl.robustness.stiffness.lemma import stiffness_lemma
from flexctl.robustness.stiffness.margin import stiffness_margin
from tests.arms import wrong_plant
from tests.robustness.stiffness.margin_witness import growth, rebuilt_loop

CLOSE = 1e-6
GIVEN = {
    "two-link-decoupling": {"link1.y.2": 2.49, "link2": 0.8},
    "rrp-gentle": {"link2": 0.9, "link2.y.2": 1.3},
    "subudhi-morris-lqr": {"rotor1": 1.4, "link2": 0.5},
    "subudhi-morris-observer": {"rotor2": 1.4, "link1.y.1": 1.1},
}


def found(name, ratios, **more):
    design = load_design(name)
    return stiffness_margin(load_model(design.model), design, stiffness=ratios, n_path=0, **more)


def rebuilt(name, margin, share):
    """Growth of the loop whose controller is designed with the fraction `share` of the error."""
    design = load_design(name)
    arm = load_model(design.model)
    parts = assemble_plant(arm, margin.basis, interpreted=True).stiffness_parts
    errors = share * np.array([margin.assumed_stiffness.errors.get(part, 0.0) for part in parts])
    truth = assemble_plant(arm, margin.truth, interpreted=True)
    return growth(rebuilt_loop(arm, design, margin.basis, truth, errors))


SLOW = "rrp-gentle", "subudhi-morris-observer"
NAMES = [pytest.param(name, marks=[pytest.mark.slow] * (name in SLOW)) for name in GIVEN]


@pytest.fixture(scope="module", params=NAMES)
def judged(request):
    return request.param, found(request.param, GIVEN[request.param])


@pytest.mark.slow_but("subudhi-morris-lqr")
def test_growth_with_all_of_the_error_is_that_of_a_controller_made_with_it(judged):
    name, margin = judged
    here = margin.assumed_stiffness.at[0]

    assert here.abscissa == pytest.approx(rebuilt(name, margin, 1.0), rel=1e-6)
    assert here.stable == (here.abscissa < 0)


def test_share_that_is_borne_ends_where_rebuilt_loops_lose_stability(judged):
    name, margin = judged
    share = margin.assumed_stiffness.at[0].interval
    if share.upper is None:
        assert rebuilt(name, margin, 20.0) < 0
    else:
        inside, outside = (
            rebuilt(name, margin, share.alpha_upper * x) for x in (1 - CLOSE, 1 + CLOSE)
        )
        assert inside < 0 < outside


def test_a_ratio_of_all_parts_is_the_error_alpha():
    margin = found("two-link-decoupling", {"link1": 1.5, "link2": 1.5})
    ends = margin.assumed_stiffness.at[0].interval

    assert 0.5 * ends.alpha_upper == pytest.approx(margin.exact.alpha_upper, rel=1e-9)
    assert 0.5 * margin.assumed_stiffness.lemma.alpha_star == pytest.approx(
        margin.lemma.alpha_star, rel=1e-9
    )


def test_a_share_ends_where_no_stiffness_is_left():
    # link2 at half its stiffness: all of twice that error would be none, and none is lost before
    share = found("two-link-decoupling", {"link2": 0.5}).assumed_stiffness.at[0].interval

    assert share.upper is None


def test_the_lemma_of_a_given_error_is_that_of_its_matrix():
    margin = found("two-link-decoupling", {"link1.y.2": 2.49, "link2": 0.8})
    arm = load_model("planar-two-link")
    right = assemble_plant(arm, margin.basis, interpreted=True)
    assumed = margin.assumed_stiffness
    wrong = wrong_plant(arm, margin.basis, assumed.errors)
    q = right.straight(np.array(list(margin.pose.values())))
    dK = wrong.elastic_stiffness(q) - right.elastic_stiffness(q)

    assert assumed.lemma.alpha_star == pytest.approx(
        stiffness_lemma(right, q, dK, farthest=10.0).alpha_star, rel=1e-9
    )


def test_the_motion_is_judged_pose_by_pose():
    design = load_design("two-link-decoupling")
    margin = stiffness_margin(load_model(design.model), design, stiffness={"link2": 0.9}, n_path=3)

    assert [at.t for at in margin.assumed_stiffness.at] == [None, *(pose.t for pose in margin.path)]


@pytest.mark.parametrize(
    ("ratios", "said"),
    [
        ({"link9": 1.1}, r"stiffness: expected some of link1.y.1, .*, got 'link9'"),
        ({"link1": -1.0}, r"stiffness.link1: expected K_hat/K above 0, got -1"),
        ({"link1": 1.0}, r"stiffness: expected one ratio other than 1 at least, got none"),
    ],
)
def test_ratios_that_are_none_are_refused(ratios, said):
    with pytest.raises(InputError, match=said):
        found("two-link-decoupling", ratios)
