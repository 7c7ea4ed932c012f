"""`flexctl margin` as a person and as a script use it."""

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from matplotlib.text import Text

from flexctl.model.record import BasisChoice
from flexctl.robustness.certificates.record import CertifiedErrors
from flexctl.robustness.lft.mu_bounds import MuBounds
from flexctl.robustness.lft.worst_case import WorstCase
from flexctl.robustness.stiffness.lemma import Lemma
from flexctl.robustness.stiffness.path_growth import PathGrowth
from flexctl.robustness.stiffness.record import (
    Growing,
    Guaranteed,
    IndependentErrorsAt,
    Interval,
    Locus,
    ModeRate,
    OrderMargin,
    PoseMargin,
    StabilityLimit,
    StiffnessMargin,
    guaranteed_errors,
)
from flexctl.search.bias_advice import BiasAdvice, OfferedBias, best_bias, common_ends
from flexctl.search.bias_run import BiasRun
from flexctl.search.remedies import Remedies
from flexctl.view.commands.margin_table import margin_table
from flexctl.view.figures.margin import plot_margin
from flexctl.view.json.margins import margin_json
from flexctl.view.output import console
from flexctl.view.words.bias import advice_words
from flexctl.view.words.margins import margin_words, range_words
from tests.numbers_in_words import sources

ARM = "subudhi-morris-2r"
QUICK = ("--truth-modes", "2", "--path", "3", "--no-structured")
MODES = BasisChoice(kind="modes", order=2)
FLUTTER = StabilityLimit(alpha=0.1, frequency=20.0, mode="link2.y.1")
BELOW = StabilityLimit(alpha=-0.4, frequency=0.0, mode="joint1")


def of(name):
    """Words that ask for the margin of a catalogue design of the arm."""
    return ("margin", ARM, f"subudhi-morris-{name}", *QUICK)


def undamped():
    return ("margin", "wu-haug-spin-up", "wu-haug-2", "--path", "2", "--no-structured")


def lemma(alpha_star):
    return Lemma(
        H=np.eye(1) / alpha_star,
        lambda_max=1 / alpha_star,
        alpha_star=alpha_star,
        loss="none" if np.isinf(alpha_star) else "divergence",
        basis=MODES,
        coordinates=("link2.y.1",),
        assumptions=(),
    )


def pose(t, upper, lower=None):
    interval = Interval(lower=lower, upper=upper, unknowns=8)
    return PoseMargin(t=t, alpha_star=0.3, interval=interval)


def margin(**changes):
    """Give a margin made up by hand, with these changes."""
    alpha = np.array([-0.5, -0.1, -0.01, 0.0, 0.01, 0.1, 0.5])
    poles = tuple(np.array([-1 + 10 * a + 20j, -1 + 10 * a - 20j, -5.0]) for a in alpha)
    made = StiffnessMargin(
        model="arm",
        design="law",
        truth=MODES,
        basis=MODES,
        pose={"joint1": 0.0},
        second_loop=False,
        lemma=lemma(0.3),
        partial={},
        true_arm_lemma=None,
        exact=Interval(lower=None, upper=FLUTTER, unknowns=8, counted=3),
        rates=(ModeRate(mode="link2.y.1", value=-1 + 20j, rate=10 + 0j),),
        locus=Locus(alpha=alpha, poles=poles),
        path=(pose(0.0, FLUTTER), pose(1.0, FLUTTER)),
        orders=(),
        independent=(),
        unknown_damping=False,
        assumptions=("linear",),
    )
    return replace(made, **changes)


def offered(bias, other_arms=0.2, **ends):
    ends = {"lower": -1.0, "upper": 0.3} | ends
    return OfferedBias(bias=bias, other_arms=other_arms, **ends)


def said(found, **advice):
    ends = common_ends(found)
    given = BiasAdvice(at_rest=offered(round(best_bias(ends), 9)), **advice) if ends else None
    return margin_words(found, advice_words(given, along=bool(found.path)))


def independent(sizes=None, **changes):
    """Give bounds of two independent errors made up by hand, in these sizes of their kinds."""
    worst = WorstCase(
        gamma=0.2,
        names=("link1.y.1", "link2.y.1"),
        delta=np.array([0.1, -0.2]),
        eigenvalue=20j,
        frequency=20.0,
        verified=True,
        tried=10,
    )
    bounds = {
        "guaranteed_fraction": 0.15,
        "mu_peak": 1 / 0.15,
        "frequency": 19.0,
        "proven": True,
        "not_proven": (),
        "worst_case": worst,
        "grid": np.array([0.0, 20.0]),
        "mu": np.array([1.0, 5.0]),
        "cover": SimpleNamespace(),
        "notes": (),
    }
    found = MuBounds(**{**bounds, **changes})
    return IndependentErrorsAt(
        t=1.0,
        where="the final pose",
        second_loop=False,
        bounds=found,
        mode="link2.y.1",
        guaranteed=guaranteed_errors(found.guaranteed_fraction, sizes or {"modes": 1.0}),
        worst_errors={"link1.y.1": 0.1, "link2.y.1": -0.2},
    )


def tabled(found):
    """Give what the terminal shows of it."""
    with (printer := console()).capture() as heard:
        printer.print(margin_table(found, "so"))
    return heard.get()


def words_drawn(found):
    figure = plot_margin(found)
    figure.set_layout_engine("none")  # words only, wherever they stand
    figure.draw_without_rendering()
    return " ".join(text.get_text() for text in figure.findobj(Text))


def test_the_answers_numbers_belong_together(flexctl):
    heard = flexctl(*of("decoupling"), "--json")
    found = json.loads(heard.out)
    exact, path = found["exact"], found["path"]

    assert (heard.status, heard.err) == (0, "")
    assert exact["alpha_upper"] == exact["upper"]["alpha"]
    assert exact["crossing_frequency"] == exact["upper"]["frequency"] > 0
    assert len(path["t"]) == len(path["exact"]) == 3
    assert found["structured"] is None
    assert found["errors"] is None
    worst = min(exact["alpha_upper"], *path["exact"])
    assert found["remedies"]["bias"]["bias"] == pytest.approx((worst - 1) / 2, rel=1e-12)
    assert found["assumptions"]["damping"] == "known"


@pytest.mark.slow
def test_biases_are_run_where_runs_are_asked_for(flexctl):
    words = (*of("decoupling")[:5], "--path", "1", "--no-structured", "--run", "--need", "0.6")
    found = json.loads(flexctl(*words, "--json").out)
    bias, need = found["remedies"]["bias"], found["remedies"]["bias_for_need_run"]
    served = [run["bias"] for run in bias["run"][1:] if run["serves"]]
    worst = min(found["exact"]["alpha_upper"], *found["path"]["exact"])

    assert bias["smallest"]["bias"] == pytest.approx((1 + worst) / 1.1 - 1, rel=1e-9)
    assert bias["run"][1]["bias"] == bias["smallest"]["bias"]  # it is tried first
    assert bias["advised"]["bias"] == min(served)
    assert need["bias"] == found["remedies"]["bias_for_need"] < 0
    assert need["serves"] == (need["times"] <= 2) is True
    own = bias["run"][0]["tip_error_max"]
    assert need["times"] == pytest.approx(need["tip_error_max"] / own, rel=1e-12)
    assert "in a run with it the tip error is" in found["verdict"]


@pytest.mark.parametrize(
    ("words", "said_there"),
    [
        (
            of("decoupling"),
            "The lemma gives no limit (alpha* infinite, 2 modes), as it neglects joint error",
        ),
        (of("decoupling"), "flutter of link1's first mode in y"),
        (of("slow-only"), "the control law uses no stiffness"),
        (undamped(), "Any overestimate of the stiffness, however small, destabilises wu-haug-2"),
        (undamped(), "(3 modes) is not a margin"),
    ],
)
@pytest.mark.slow_but("words1-*", "words2-*")
def test_a_person_reads_how_wrong_the_stiffness_may_be(flexctl, words, said_there):
    heard = flexctl(*words)

    assert heard.status == 0
    assert said_there in " ".join(heard.out.split())


@pytest.mark.parametrize("words", [of("decoupling"), of("slow-only"), undamped()])
@pytest.mark.slow_but("words1")
def test_the_figure_is_drawn(flexctl, tmp_path, words):
    assert flexctl(*words, "--plot", tmp_path / "margin.svg").status == 0
    drawn = (tmp_path / "margin.svg").read_text(encoding="utf-8")

    assert "how wrong may its stiffness be?" in drawn
    assert "modes)" in drawn  # the lemma's order


@pytest.mark.parametrize(
    ("lower", "upper", "words"),
    [
        (-0.0456789, 0.0456789, "payload +-4.56 %"),
        (-1.0, 1.23999, "payload any physical value from -100 % up to +123 %"),
        (-0.045, 0.045, "payload +-4.5 %"),
        (0.0, 0.0, "payload +-0 %"),
    ],
)
def test_ranges_that_are_proven_are_rounded_towards_zero(lower, upper, words):
    assert range_words(Guaranteed(kind="payload", lower=lower, upper=upper)) == words


@pytest.mark.parametrize(("least", "status"), [(0.1, 0), (0.9, 1)])
@pytest.mark.slow_but("0.9-1")
def test_a_margin_may_be_required(flexctl, least, status):
    asked = ("--json", "--require", f"exact.alpha_upper>{least}")
    assert flexctl(*of("decoupling"), *asked).status == status


@pytest.mark.slow  # takes long
def test_orders_of_the_design_are_judged_on_the_same_truth(flexctl):
    found = json.loads(flexctl(*of("decoupling"), "--orders", "--json").out)

    kinds = [(order["kind"], order["order"]) for order in found["orders"]]
    assert kinds == [(kind, k) for kind in ("modes", "elements") for k in (1, 2, 3, 4)]
    same = found["orders"][1]
    assert same["alpha_upper"] == pytest.approx(found["exact"]["alpha_upper"], rel=1e-6)


@pytest.mark.slow  # takes long
def test_a_chosen_pose_is_judged(flexctl):
    found = json.loads(flexctl(*of("decoupling"), "--pose", "joint2=0.5", "--json").out)

    assert found["pose"] == {"joint1": 0.0, "joint2": 0.5}
    assert found["second_loop"] is False
    assert "at the chosen pose" in found["verdict"]


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (
            ("--pose", "link2.y.1=0.1"),
            "--pose: expected joint variables of subudhi-morris-2r (joint1",
        ),
        (("--pose", "joint1=up"), "--pose: expected a finite number, got 'up'"),
        (("--errors", "modes"), "--errors: expected none with --no-structured, got 'modes'"),
        (("--time-limit", "5"), "--time-limit: expected none with --no-structured, got 5"),
    ],
)
def test_a_wrong_word_is_refused_in_one_line(flexctl, options, complaint):
    heard = flexctl(*of("decoupling"), *options)

    assert (heard.status, heard.out) == (2, "")
    assert complaint in heard.err
    assert heard.err.strip().count("\n") == 0


@pytest.mark.parametrize(
    ("errors", "complaint"),
    [
        (("gravity",), "errors: expected some of modes, links, damping, payload, got gravity"),
        (("modes=0",), "errors.modes: expected a size above 0, got 0"),
        (("modes=much",), "--errors: expected a finite number, got 'much'"),
        (("modes", "modes=0.1"), "--errors: expected every kind once, got 'modes' again"),
        (("modes", "links"), "errors: expected modes or links, got both"),
    ],
)
def test_an_error_that_is_none_is_refused_in_one_line(flexctl, errors, complaint):
    asked = [part for error in errors for part in ("--errors", error)]
    heard = flexctl("margin", ARM, "subudhi-morris-decoupling", *asked)

    assert (heard.status, heard.out) == (2, "")
    assert complaint in heard.err
    assert heard.err.strip().count("\n") == 0


ROD_PD = """
summary = "Joint PD"
source = "flexctl"
model = "rigid"
method = "joint-pd"
[reference]
kind = "quintic"
from = [0.0]
to = [0.5]
duration = 0.5
[gains]
Gp = [8.0]
Gv = [3.0]
"""


def test_a_rigid_arm_has_no_margin_and_is_named_by_its_file(flexctl, sprung, tmp_path):
    model, design = tmp_path / "rigid.toml", tmp_path / "rigid-pd.toml"
    lines = sprung["rod-on-spring"].read_text().splitlines(keepends=True)
    model.write_text("".join(line for line in lines if "flexible_joint" not in line))
    design.write_text(ROD_PD)
    heard = flexctl("margin", model, design, "--errors", "payload")

    assert (heard.status, heard.out) == (2, "")
    assert heard.err.strip().endswith(
        f"{model}: margin: expected an arm with a flexible link or joint, whose stiffness may be "
        "wrong, got a rigid one (flexctl track --over payload.mass=FROM:TO follows its eigenvalues)"
    )


def test_errors_of_the_arm_of_a_sampled_law_are_bounded(flexctl, sprung, tmp_path):
    design = tmp_path / "sampled.toml"
    design.write_text(ROD_PD + "[loop]\nsample_time = 0.001\n")
    heard = flexctl(
        "margin", sprung["rod-on-spring"], design, "--errors", "payload=1", "--path", "0", "--json"
    )

    assert heard.status == 0, heard.err
    at = json.loads(heard.out)["structured"]
    assert at["proven"]
    assert at["guaranteed_fraction"] > 0


def test_a_loop_that_is_unstable_without_error_is_refused_by_its_mode(flexctl):
    heard = flexctl(*of("printed"))

    assert heard.out == ""
    assert heard.status == 3
    assert "got one in which" in heard.err
    assert heard.err.strip().count("\n") == 0


UNSTABLE = PoseMargin(
    t=0.5, alpha_star=0.3, interval=None, growing=Growing(mode="joint1", rate=None, frequency=0.0)
)
NO_REST = replace(UNSTABLE, growing=None, reason="the loop has no equilibrium at its reference")
WEAK = replace(UNSTABLE, growing=None, reason="the actuators cannot hold the arm")
ZERO = replace(FLUTTER, alpha=0.0)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {},
            "tolerates a stiffness overestimate of up to 10 % at the final pose (limit: flutter of",
        ),
        ({}, "not the lemma's 30 % (2 modes)"),
        ({}, "It tolerates any underestimate. "),
        ({"unknown_damping": True}, "With damping unknown to the controller, law on arm"),
        (
            {"path": (pose(0.2, replace(FLUTTER, alpha=0.01)),)},
            "but only 1 % when held still at t = 0.2 s of the motion (flutter of link2's first "
            "mode in y at 20 rad/s)",
        ),
        (
            {"path": (pose(0.2, replace(FLUTTER, alpha=0.0)),)},
            ", but none when held still at t = 0.2 s of the motion (flutter",
        ),
        ({"path": (pose(0.2, None),)}, ", and at least as much at every pose of the motion."),
        (
            {"path": (pose(0.2, FLUTTER, BELOW),)},
            "underestimates of up to 40 % (limit: divergence of joint1, when held still at t = 0.2",
        ),
        (
            {"lemma": lemma(np.inf)},
            "The lemma gives no limit (alpha* infinite, 2 modes), as it neglects joint error",
        ),
        ({"lemma": lemma(0.05)}, "5 % (2 modes) concerns the flexible block alone"),
        ({"exact": Interval(lower=None, upper=None, unknowns=8)}, "tolerates any overestimate"),
        ({"exact": Interval(lower=None, upper=None)}, "the control law uses no stiffness"),
        (
            {"exact": Interval(lower=None, upper=ZERO, unknowns=8)},
            "Any overestimate of the stiffness, however small, destabilises law on arm at the",
        ),
        (
            {"exact": Interval(lower=None, upper=ZERO, unknowns=8)},
            "The lemma's 30 % (2 modes) is not a margin",
        ),
        (
            {"exact": Interval(lower=None, upper=FLUTTER, unmoved=("link1.z.1",), unknowns=8)},
            "Undamped for every error, and therefore not judged: link1's first mode in z.",
        ),
        (
            {"path": (pose(0.0, FLUTTER), UNSTABLE)},
            "Unstable without any error at 1 of 2 poses of the motion, held still: at t = 0.5 s "
            "joint1 grows.",
        ),
        (
            {"path": (UNSTABLE,)},
            "Unstable without any error at every pose of the motion, held still",
        ),
        (
            {"path": (pose(0.0, FLUTTER), NO_REST)},
            "No margin at 1 of 2 poses of the motion, held still: at t = 0.5 s the loop has no "
            "equilibrium at its reference.",
        ),
        (
            {"path": (WEAK, UNSTABLE)},
            "No margin at every pose of the motion, held still: at t = 0.5 s the actuators cannot "
            "hold the arm.",
        ),
    ],
)
def test_the_verdict_says_what_an_engineer_can_act_on(changes, words):
    assert words in said(margin(**changes))


OWN = BiasRun(bias=0.0, tip_error_max=0.02, tip_error_end=1e-3, times=1.0)
TAME = BiasRun(bias=-0.45, tip_error_max=0.03, tip_error_end=1e-3, times=1.5)
RINGS = replace(TAME, tip_error_end=1.9e-3, times=1.9)
FAILS = BiasRun(bias=-0.45, failed="the run ends at t = 0.3 s: joint3 leaves its beam")
SLIGHT = BiasRun(bias=-0.05, tip_error_max=0.039, tip_error_end=None, times=1.95)
FAR = BiasRun(bias=-0.01, tip_error_max=0.05, tip_error_end=1e-3, times=2.5)
SMALLER = offered(-0.05, upper=1.1 / 0.95 - 1)


@pytest.mark.parametrize(
    ("advice", "words"),
    [
        (
            {"runs": (OWN, TAME), "advised": offered(-0.45)},
            "A deliberate underestimate of 45 % is effective: on arms for which K_file is off by "
            "up to +-20 % the loop is stable at all these poses, held still; in a run with it the "
            "tip error is 30 mm instead of 20 mm.",
        ),
        (
            {"runs": (OWN, RINGS), "advised": offered(-0.45)},
            "the tip error is 30 mm instead of 20 mm (at the end 1.9 mm instead of 1 mm).",
        ),
        (
            {"runs": (OWN, FAILS, SLIGHT), "advised": SMALLER},
            "of 5 % is effective: on arms for which K_file is off by up to +-20 % the loop is "
            "stable at all these poses, held still; in a run with it the tip error is 39 mm "
            "instead of 20 mm; it then tolerates a K_file too high by up to 15.8 % instead of 10 "
            "%, too low by any. "
            "With 45 % the run ends at t = 0.3 s: joint3 leaves its beam.",
        ),
        (
            {"runs": (OWN, FAILS, FAR)},
            "No deliberate underestimate is effective here: already with 1 % the tip error is 50 "
            "mm instead of 20 mm.",
        ),
        (
            {"runs": (OWN, FAILS, SLIGHT), "advised": replace(SMALLER, other_arms=0.0)},
            "with 5 %, the most that its run allows, no error of K_file is tolerated",
        ),
        (
            {"runs": (OWN, TAME), "advised": offered(-0.45, tip_at_rest=0.012)}
            | {"own_tip_at_rest": 0.004},
            "; with it the tip rests 12 mm from its reference, without it 4 mm.",
        ),
        (
            {"enough": True},
            "No deliberate underestimate is needed for an error of 10 %.",
        ),
        (
            {"smallest": offered(-0.05, upper=0.1), "own_tip_at_rest": 0.0},
            "A deliberate underestimate of 5 % is the least with which an overestimate of 10 % is "
            "tolerated: on arms for which K_file is off by up to +-20 % the loop is stable at all "
            "these poses, held still; but it makes tracking worse (--run tells by how much)"
            "; with it the arm does not rest at its reference.",
        ),
        (
            {"runs": (replace(FAILS, bias=0.0),)},
            "No deliberate underestimate is advised, as its run cannot be compared: without",
        ),
    ],
)
def test_the_verdict_says_what_a_bias_does_in_motion(advice, words):
    assert words in said(margin(), **advice)


@pytest.mark.parametrize(
    ("run", "words"),
    [
        (TAME, "the tip error is 30 mm, 1.5 times that without it"),
        (FAR, "the tip error is 50 mm, 2.5 times that without it, at most 2 times is"),
        (FAILS, "the run ends at t = 0.3 s: joint3 leaves its beam"),
        (replace(TAME, times=None), "the tip error cannot be compared"),
    ],
)
def test_the_table_says_what_the_run_with_a_bias_that_is_needed_does(run, words):
    remedies = Remedies(until=0.6, bias=run.bias, bias_run=run)
    with (printer := console()).capture() as heard:
        printer.print(margin_table(margin(), "so", remedies))

    assert words in " ".join(heard.get().split())


FOLLOWED = Interval(lower=None, upper=FLUTTER, proven=False)
GROWTH = PathGrowth(error=0.1, factor=43.4, start=0.0, end=0.5, duration=0.5)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"exact": FOLLOWED}, "limits were found by continuation and are not proven."),
        ({"exact": replace(FOLLOWED, repeats=True)}, "The law repeats after several samples: the"),
        ({"exact": replace(FOLLOWED, upper=None)}, "tolerates any overestimate"),
        ({"exact": replace(FOLLOWED, upper=replace(FLUTTER, ends="fold"))}, "limit: fold of the"),
        (
            {"exact": replace(FOLLOWED, upper=replace(FLUTTER, mode="joint1", ends="torque"))},
            "(limit: torque limit of joint1)",
        ),
        (
            {"path_growth": GROWTH},
            "At 10 % a small disturbance grows by up to a factor of 43 during the motion of 0.5 s.",
        ),
        (
            {"path_growth": replace(GROWTH, factor=1.0)},
            "At 10 % some poses are unstable, but no small disturbance grows during the motion",
        ),
    ],
)
def test_what_is_no_theorem_and_what_has_a_time_is_said(changes, words):
    assert words in said(margin(**changes))


def test_what_is_exact_is_not_called_unproven():
    assert "proven" not in said(margin())


def test_no_bias_is_offered_where_a_pose_is_unstable():
    assert "deliberate" not in said(margin(path=(UNSTABLE,)))


ONE_MODE = BasisChoice(kind="modes", order=1)
BEYOND = Interval(lower=None, upper=replace(FLUTTER, alpha=3.54), unknowns=8)
HOPELESS = OrderMargin(basis=MODES, interval=None, abscissa=1.0, alpha_star=0.3, why="joint1 grows")


@pytest.mark.slow_but(
    "changes20-final pose: links +-3 %,*", "changes21-no errors were found", "*: no equilibrium"
)
@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, "lemma: 30 % (2 modes)"),
        ({}, "exact: 10 %"),
        ({}, "any underestimate is tolerated"),
        ({"lemma": lemma(np.inf)}, "lemma: infinity (2 modes)"),
        ({"path": (UNSTABLE,)}, "unstable without error"),
        ({"path": ()}, "alpha = K_hat/K - 1 [%]"),
        ({"exact": Interval(lower=BELOW, upper=None, unknowns=8)}, "exact: -40 %"),
        ({"exact": Interval(lower=None, upper=None)}, "all modes: none loses damping"),
        ({"exact": Interval(lower=None, upper=ZERO, unknowns=8)}, "growth by an overestimate"),
        ({}, "Tolerated overestimate: up to 10 % at the final pose; up to 10 % along the"),
        ({"basis": ONE_MODE}, "lemma (1 mode)"),
        ({"path": (UNSTABLE,)}, "unstable without error at 1 of 1 pose"),
        ({"exact": BEYOND}, "exact: 354 %, beyond"),
        (
            {"exact": Interval(lower=None, upper=None, unknowns=8)},
            "exact, of the whole loop: no limit",
        ),
        ({"exact": Interval(lower=None, upper=None, unknowns=8)}, "exact: no limit above"),
        ({"exact": Interval(lower=None, upper=None)}, "the control law uses no stiffness"),
        ({"orders": (HOPELESS,)}, "judged at the final pose"),
        ({"independent": (independent(),)}, "-20 %"),
        ({"independent": (independent(),)}, "final pose: modes +-15 % stable (proven)"),
        ({"independent": (independent(proven=False),)}, "15 % stable (not proven)"),
        (
            {"independent": (independent(sizes={"links": 0.2, "payload": 8.0}),)},
            "final pose: links +-3 %, payload any",
        ),
        ({"independent": (independent(worst_case=None),)}, "no errors were found"),
        (
            {"independent": (independent(), independent())},
            "worst found: destabilises link2's first mode in y at 20 rad/s",
        ),
        (
            {"independent": (replace(independent(), ends="torque", mode="joint1"),)},
            "worst found: exceeds the torque limit of joint1",
        ),
        (
            {
                "independent": (
                    independent(worst_case=None, guaranteed_fraction=0.0, stopped="late"),
                )
            },
            "no bound was found within the time limit",
        ),
        ({"orders": (HOPELESS,)}, "unstable"),
        ({"path": (replace(UNSTABLE, alpha_star=np.nan),)}, "lemma (2 modes): not known"),
        (
            {"path": tuple(replace(UNSTABLE, alpha_star=x) for x in (np.nan, np.inf))},
            "lemma (2 modes): no limit where it is known",
        ),
    ],
)
def test_the_figure_says_in_words_what_is_found(changes, words):
    drawn = words_drawn(margin(**changes))
    assert " ".join(words.split()) in " ".join(drawn.split())


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, "overestimate, lemma alpha* 30 % (2 modes)"),
        (
            {"independent": (independent(),)},
            "all of modes +-15 % together are tolerated (proven; mu peak 6.667 at 19 rad/s)",
        ),
        (
            {"independent": (independent({"links": 1.0, "payload": 0.5}),)},
            "all of links +-15 %, payload +-7.5 % together",
        ),
        (
            {"independent": (independent({"links": 0.1, "payload": 10.0}),)},
            "all of links +-1.5 %, payload any physical value from -100 % up to +150 % together",
        ),
        ({"independent": (independent(frequency=np.inf),)}, "mu peak 6.667 at no finite frequency"),
        ({"independent": (independent(),)}, "link2's first mode in y -20 %"),
        ({"independent": (independent(worst_case=None),)}, "no physical one found"),
        ({"orders": (HOPELESS,)}, "2 modes unstable"),
        ({"path": (UNSTABLE,)}, "unstable without error at 1 of 1 pose none joint1 grows"),
        ({"path": (NO_REST,)}, "no margin at 1 of 1 pose none the loop has no equilibrium"),
    ],
)
def test_the_table_says_what_is_found(changes, words):
    assert words in " ".join(tabled(margin(**changes)).split())


def certified(lower, upper, why="", pieces=7):
    return CertifiedErrors(
        alpha_lower=lower, alpha_upper=upper, pieces=pieces, relative_error=1e-12, why=why
    )


def along(*found):
    """Poses of which these errors are certified."""
    return tuple(
        replace(pose(float(t), FLUTTER), certified=certified(*one)) for t, one in enumerate(found)
    )


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            # rounded towards 0: nothing is said that is not proven
            {"certified": certified(-0.99967, 0.099999), "path": along((-0.5, 0.08), (-0.9, 0.09))},
            "Proven in interval arithmetic: the linear loop is stable for errors from -99.9 % to "
            "+9.99 % at the final pose, and from -50 % to +8 % at all 2 poses of the motion; this "
            "says nothing of the nonlinear arm, nor of dry friction.",
        ),
        (
            {"certified": certified(None, None, "it moves"), "path": along((None, None, "moves"))},
            "Nothing is proven in interval arithmetic at the final pose: it moves. Nothing is "
            "proven so at 1 of 1 pose of the motion: moves.",
        ),
        (
            {"certified": certified(-0.9, 0.1), "path": along((-0.5, 0.08))},
            "at the final pose, and from -50 % to +8 % at the judged pose of the motion; this",
        ),
        (
            {"certified": certified(-1.0, np.inf), "path": ()},
            "stable for errors of any size at the final pose; this says nothing",
        ),
    ],
)
def test_what_is_certified_is_said_with_what_it_leaves_open(changes, words):
    assert words in margin_words(margin(**changes))
    assert "interval arithmetic" not in margin_words(margin())


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"certified": certified(-0.7, 0.05), "path": along((-0.5, 0.04))},
            "proven in interval arithmetic at the final pose from -70 % to +5 % - in 7 pieces",
        ),
        ({"certified": certified(-0.7, 0.05), "path": along((-0.5, 0.04))}, "from -50 % to +4 %"),
        ({"certified": certified(None, None, "it moves")}, "final pose nothing - it moves"),
        ({"certified": certified(-0.7, 0.05, "too narrow")}, "in 7 pieces, too narrow"),
    ],
)
def test_the_table_says_what_is_certified(changes, words):
    assert words in " ".join(tabled(margin(**changes)).split())


def test_what_is_certified_stands_in_the_answer():
    some = margin(certified=certified(-0.7, 0.05), path=along((-0.5, 0.04), (-0.6, 0.03)))
    answer = margin_json(some)
    own = answer["certified"]

    assert (own["alpha_lower"], own["alpha_upper"], own["pieces"]) == (-0.7, 0.05, 7)
    assert (own["path_alpha_lower"], own["path_alpha_upper"]) == (-0.5, 0.03)
    assert answer["not_certified"] is None
    assert answer["path"]["certified_lower"] == [-0.5, -0.6]
    assert answer["path"]["certified_upper"] == [0.04, 0.03]
    moved = margin(certified=certified(None, None, "it moves"), path=along((None, None, "moves")))
    answer = margin_json(moved)
    assert answer["certified"] is None
    assert (answer["not_certified"], answer["path"]["not_certified"]) == ("it moves", ["moves"])
    assert margin_json(margin())["certified"] is margin_json(margin())["not_certified"] is None


def test_the_command_certifies_where_that_is_asked(flexctl):
    answer = json.loads(flexctl(*of("decoupling"), "--certify", "--json").out)
    exact, own = answer["exact"], answer["certified"]

    assert exact["alpha_lower"] <= own["alpha_lower"] < 0 < own["alpha_upper"]
    assert 0.999 * exact["alpha_upper"] <= own["alpha_upper"] <= exact["alpha_upper"]
    assert own["path_alpha_upper"] <= min(answer["path"]["exact"])
    said = " ".join(answer["assumptions"]["sentences"])
    assert "says nothing of the nonlinear arm" in said


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, "Independent errors tolerated: modes +-15 % at the final pose."),
        ({"worst_case": None}, "tolerated: modes +-15 % at the final pose."),
        ({"proven": False}, "tolerated: modes +-15 % at the final pose (not proven)."),
        (
            {"guaranteed_fraction": 0.0, "stopped": "time is up", "worst_case": None},
            "at the final pose: no bound was found, as time is up (--time-limit).",
        ),
    ],
)
def test_the_verdict_answers_for_independent_errors(changes, words):
    assert words in said(margin(independent=(independent(**changes),)))
    assert words in said(margin(independent=(independent(**changes),), exact=NO_STIFFNESS))


@pytest.mark.parametrize(
    ("ends", "verdict", "table"),
    [
        (
            "fold",
            "fold of the equilibrium",
            "ends the equilibrium in a fold, critical mode joint1, verified by eigenvalues",
        ),
        (
            "torque",
            "torque limit of an actuator",
            "exceeds the torque limit of joint1, verified by the holding torque",
        ),
    ],
)
def test_what_ends_an_equilibrium_is_said(ends, verdict, table):
    bounds = {"followed": True, "guaranteed_fraction": 0.2}
    at = replace(independent({"payload": 1.0}, **bounds), ends=ends, mode="joint1")
    found = margin(independent=(at,))
    assert f"payload +-20 % at the final pose (limit: {verdict})." in said(found)
    shown = " ".join(tabled(found).split())
    assert "payload +-20 % is tolerated (by continuation, not proven)" in shown
    assert table in shown


def test_where_the_time_was_over_nothing_is_said_to_end_the_range():
    bounds = {"guaranteed_fraction": 0.004, "stopped": "the time limit of 5 s was reached"}
    at = replace(independent({"payload": 1.0}, **bounds), ends="torque", mode="joint1")
    text = said(margin(independent=(at,)))
    assert "payload +-0.4 % at the final pose (at least: the time limit of 5 s" in text
    assert "too large is link2's first mode in y -20 %" in text
    assert "torque limit" not in text


NO_STIFFNESS = Interval(lower=None, upper=None)


def test_the_lemma_gives_no_number_for_a_law_that_uses_no_stiffness():
    found = margin(
        exact=NO_STIFFNESS, path=(PoseMargin(t=0.0, alpha_star=0.3, interval=NO_STIFFNESS),)
    )
    shown, drawn = " ".join(tabled(found).split()), words_drawn(found)

    assert "lemma alpha* does not apply - overestimate" in shown
    assert "divergence" not in shown
    assert "lemma: does not apply" in drawn
    assert "lemma (2 modes): does not apply" in drawn
    assert "30 %" not in shown + drawn


def test_a_law_that_uses_the_stiffness_while_moving_uses_it():
    # composite control, which state feedback takes over after the motion
    moving = replace(NO_STIFFNESS, unknowns=3)
    path = (PoseMargin(t=0.0, alpha_star=0.3, interval=moving),)
    found = margin(exact=NO_STIFFNESS, path=path, second_loop=True)

    assert "uses no stiffness" not in margin_words(found)
    assert "and at least as much at every pose of the motion" in margin_words(found)
    assert "does not apply" not in tabled(found)


@pytest.mark.parametrize("proven", [True, False])
def test_only_what_is_proven_is_called_so(proven):
    interval = Interval(lower=BELOW, upper=FLUTTER, unknowns=8, proven=proven)
    at = PoseMargin(t=1.0, alpha_star=0.3, interval=interval)
    rows = tabled(margin(exact=interval, path=(at,)))
    assert rows.count("exact") == (4 if proven else 0)  # above and below, here and on the way
    bounds = independent(proven=proven, not_proven=() if proven else ((18.0, 19.0),))
    shown = tabled(margin(exact=interval, path=(), independent=(bounds,)))
    assert ("not proven" in " ".join(shown.split())) == (not proven)
    assert "proven" in shown


@pytest.mark.parametrize("verified", [True, False])
def test_a_worst_case_says_whether_eigenvalues_verified_it(verified):
    at = independent()
    worst = replace(at.bounds.worst_case, verified=verified)
    shown = tabled(margin(independent=(independent(worst_case=worst),)))
    assert ("not verified" in shown) == (not verified)


def read(text, record):
    """Where the numbers of a margin's words stand in the record."""
    units = {"t": "s", "frequency": "rad/s", "crossing": "rad/s"}
    return sources(text.replace("2 modes", ""), record, units)


ABOVE, WAY = (
    StabilityLimit(alpha=0.1437, frequency=21.3, mode="link1.y.1"),
    StabilityLimit(alpha=0.0731, frequency=33.9, mode="link2.y.2"),
)
UNDER, WAY_UNDER = (
    StabilityLimit(alpha=-0.613, frequency=5.17, mode="joint1"),
    StabilityLimit(alpha=-0.271, frequency=47.7, mode="link2.y.1"),
)


def losses(**ends):
    return {k: {"alpha": v.alpha, "frequency": v.frequency} for k, v in ends.items()}


@pytest.mark.parametrize(
    ("way", "places"),
    [
        (
            (WAY, WAY_UNDER),
            ["above.alpha", "above.frequency", "way.alpha", "t", "way.frequency",
             "way_under.alpha", "way_under.frequency", "t", "star"],
        ),
        (
            (None, None),
            ["above.alpha", "above.frequency", "under.alpha", "under.frequency", "star"],
        ),
        (
            (replace(WAY, alpha=0.2), replace(WAY_UNDER, alpha=-0.8)),
            ["above.alpha", "above.frequency", "under.alpha", "under.frequency", "star"],
        ),
    ],
)  # fmt: skip
def test_every_number_of_the_verdict_is_that_of_the_loss_it_speaks_of(way, places):
    exact = Interval(lower=UNDER, upper=ABOVE, unknowns=8)
    there = Interval(lower=way[1], upper=way[0], unknowns=8)
    found = margin(
        exact=exact, lemma=lemma(0.317), path=(PoseMargin(t=0.83, alpha_star=0.9, interval=there),)
    )
    record = losses(above=ABOVE, way=way[0] or WAY, under=UNDER, way_under=way[1] or WAY_UNDER)
    words = margin_words(found)

    assert read(words, record | {"t": 0.83, "star": 0.317}) == places


def test_of_many_poses_the_worst_is_spoken_of():
    poses = [
        PoseMargin(t=t, alpha_star=0.9, interval=Interval(lower=lower, upper=upper, unknowns=8))
        for t, lower, upper in [
            (0.11, UNDER, replace(WAY, alpha=0.12)),
            (0.47, replace(WAY_UNDER, alpha=-0.5), WAY),
            (0.83, WAY_UNDER, replace(WAY, alpha=0.13)),
        ]
    ]
    found = margin(exact=Interval(lower=UNDER, upper=ABOVE, unknowns=8), path=tuple(poses))

    assert found.worst.t == 0.47
    assert found.worst_below.t == 0.83
    words = margin_words(found)
    assert words.index("t = 0.47 s") < words.index("7.31 %") + 40
    assert "27.1 %" in words
    assert "t = 0.83 s" in words[words.index("27.1 %") :]


def test_a_panel_with_nothing_to_show_has_no_frame():
    figure = plot_margin(margin(independent=(independent(worst_case=None),)))

    (panel,) = [axes for axes in figure.axes if not axes.axison]
    assert [text.get_text() for text in panel.texts] == [
        "no errors were found that destabilise: no worst case to show"
    ]
    assert not panel.patches


def test_no_legend_lies_over_data():
    figure = plot_margin(margin(orders=(HOPELESS,)))
    figure.draw_without_rendering()

    legends = [(axes, axes.get_legend()) for axes in figure.axes if axes.get_legend()]
    assert len(legends) == 4  # motion, frequencies, rates and orders
    gaps = [one.get_window_extent().y0 - axes.get_window_extent().y1 for axes, one in legends]
    assert min(gaps) >= 0


UNDAMPED = -6e-14 + 18.24j


@pytest.mark.parametrize(
    ("value", "rate", "cells"),
    [
        (UNDAMPED, 74.1, ["18.24", "0", "0.741", "0 %"]),
        (UNDAMPED, 1e-9, ["18.24", "0", "-", "-"]),
        (-1 + 20j, 10.0, ["20", "1", "0.1", "10 %"]),
        (-1 + 20j, -10.0, ["20", "1", "-", "-"]),
        (-32.6 + 3477j, 3.29e-3, ["3477", "32.6", "3.29e-05", "over 1000 %"]),
    ],
)
def test_rates_to_first_order_show_no_round_off(value, rate, cells):
    found = margin(rates=(ModeRate(mode="link2.y.1", value=value, rate=complex(rate)),))

    table = tabled(found)
    row = next(line for line in table.splitlines() if line.strip().startswith("link2's first"))
    assert [cell.strip() for cell in row.split("in y")[1].split("  ") if cell.strip()] == cells
    assert "no decay left at (first order)" in " ".join(table.split())
