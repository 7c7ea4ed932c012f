"""Gains of second loop, fast loop and observer that are chosen, in place of solved ones."""

import dataclasses

import numpy as np
import pytest
import scipy.optimize

import flexctl
from flexctl.control import gains_used
from flexctl.errors import InputError
from flexctl.loop import close_around, linearise_loop
from flexctl.model import BasisChoice, apply_settings, build_file, load_model, with_values
from flexctl.model.design import Design
from flexctl.plant import find_compiler, library_cache
from tests.designs import make_design

WEIGHTS = {"joint_error": 300.0, "joint_rate": 3.0, "strain_energy": 1.0, "kinetic_energy": 1.0}
SECOND = {"weights": WEIGHTS | {"effort": 1e-3}}
FAST = {"weights": {"strain_energy": 1.0, "kinetic_energy": 1.0, "effort": 10.0}}
SEEN = {"measures": ["encoder", "tachometer", "strain_gauge"]}
GAINS = {"Gp": [120.0], "Gv": [26.0]}


def stiff_arm():
    return apply_settings(load_model("planar-two-link"), ["links.EI=*30", "payload.mass=0.1"])


def trial(method="decoupling", **tables):
    """Design of a two-link arm that a second of motion and rest takes."""
    tables = {"duration": 0.4, "gains": GAINS} | tables
    return make_design([0.0, 0.0], [0.5, 0.4], method, **tables)


def close(design, **options):
    """Loop on its own design plant of one mode per link."""
    basis = BasisChoice(order=1)
    controller = flexctl.design_controller(stiff_arm(), design, basis, **options)
    return close_around(controller, controller.plant)


SOLVED = {
    "second loop": (trial(second_loop=SECOND), ("second_loop.gain",)),
    "fast loop": (trial("composite", fast_loop=FAST), ("fast_loop.Kp", "fast_loop.Kv")),
    "observer": (trial(loop=SEEN), ("observer.gain",)),
}


@pytest.fixture(scope="module", params=list(SOLVED))
def solved(request):
    """Loop with solved gains and these gains by their keys."""
    design, keys = SOLVED[request.param]
    loop = close(design)
    used = gains_used(loop.controller)
    names = {"second_loop.gain": "K", "observer.gain": "L"}
    return loop, {key: used[names.get(key, key[-2:])] for key in keys}


_OTHER = ("assumptions", "wall_seconds")


def numbers_of(record):
    """All numbers of a record and of those in it, exactly, without sentences and seconds taken."""
    if dataclasses.is_dataclass(record):
        fields = {f.name: getattr(record, f.name) for f in dataclasses.fields(record)}
        return {name: numbers_of(x) for name, x in fields.items() if name not in _OTHER}
    return np.asarray(record).tobytes() if isinstance(record, np.ndarray) else repr(record)


@pytest.mark.slow_but("fast loop")
def test_the_solved_gain_chosen_gives_the_same_verdict_bit_by_bit(solved):
    loop, gains = solved
    assert loop.controller.weights is None
    chosen = loop.at(gains)
    verdicts = flexctl.evaluate(loop), flexctl.evaluate(loop, gains)

    assert chosen.law_key == loop.law_key
    np.testing.assert_array_equal(chosen.law_numbers, loop.law_numbers)
    ours, theirs = map(numbers_of, verdicts)
    if "observer.gain" in gains:  # which is that of one period only
        assert "observer.gain is chosen" in verdicts[1].not_computed["margins.min_sampling_rate"]
        for key in ("min_sampling_rate", "not_computed"):
            assert ours.pop(key) != theirs.pop(key)
    assert ours == theirs
    assert verdicts[0].tracking.tip_error_rms > 0


def test_a_gain_that_is_chosen_is_in_the_record_and_the_riccati_solution_is_not(solved):
    loop, gains = solved
    smaller = {key: 0.9 * np.array(gain) for key, gain in gains.items()}
    own, used = loop.at(smaller).controller, gains_used(loop.at(smaller).controller)

    for key, gain in smaller.items():
        name = {"second_loop.gain": "K", "observer.gain": "L"}.get(key, key[-2:])
        np.testing.assert_array_equal(used[name], gain)
    if own.feedback:
        assert not hasattr(own.feedback, "cost")
    if own.fast:
        assert own.fast.lqr is None
    if own.observer:
        assert own.observer.covariance is None
        assert own.observer.residual is None


def test_chosen_gains_stay_until_weights_are_given(solved):
    loop, gains = solved
    smaller = {key: 0.9 * np.array(gain) for key, gain in gains.items()}
    heavier = loop.at(smaller).at({"payload.mass": 0.12, "gains.Gp": 110.0})
    redesigned = loop.at({"payload.mass": 0.12, "gains.Gp": 110.0})
    source = {"second_loop": "weights.effort", "fast_loop": "weights.effort"}
    key = next(iter(gains)).split(".")[0]
    source = f"{key}.{source.get(key, 'noise.torque')}"
    loops = [one for one in (heavier, heavier.at({source: 0.5}), redesigned.at({source: 0.5}))]
    kept, again, expected = (gains_used(one.controller) for one in loops)

    for name, gain in smaller.items():
        own = {"second_loop.gain": "K", "observer.gain": "L"}.get(name, name[-2:])
        np.testing.assert_array_equal(kept[own], gain)
    assert again == expected
    assert loops[1].controller.weights is None
    assert loops[1].controller.design == loops[2].controller.design


def test_an_observer_without_a_table_of_its_own_returns_to_the_noise_of_its_defaults():
    loop = close(trial(loop=SEEN), interpreted=True)
    other = loop.at({"observer.gain": 0.8 * loop.controller.observer.gain})
    again = other.at({"observer.noise.torque": 0.1})

    assert other.controller.design.observer.gain is not None
    np.testing.assert_array_equal(again.controller.observer.gain, loop.controller.observer.gain)


def distance(one, other):
    """Largest distance of two sets of poles, over the largest pole."""
    gaps = np.abs(one[:, None] - other)
    rows, columns = scipy.optimize.linear_sum_assignment(gaps)
    return gaps[rows, columns].max() / np.abs(one).max()


@pytest.mark.parametrize("factor", [0.9, -0.2])
def test_poles_under_a_chosen_second_loop_are_those_of_a_matrix_made_by_hand(factor):
    # e'' = u = -G [e; q_f; e'; q_f'] and M_ff q_f'' = -(M_fr u + K_f x + D_f x')
    loop = close(trial(second_loop=SECOND), interpreted=True)
    G = factor * loop.controller.feedback.gain
    chosen = loop.at({"second_loop.gain": G})
    plant = flexctl.linearise(loop.truth, loop.truth.straight(loop.controller.reference.final))
    n, m = len(plant.M), 2
    u = -G
    rest = plant.M[m:, :m] @ u + np.hstack([plant.K[m:], plant.D[m:]])
    A = np.vstack([np.eye(n, 2 * n, n), u, -np.linalg.solve(plant.M[m:, m:], rest)])
    poles = np.linalg.eigvals(A)

    found = flexctl.linearise(chosen).poles
    assert distance(poles, found) < 1e-9
    assert distance(poles, chosen.controller.feedback.poles) < 1e-9
    assert (poles.real.max() < 0) == (factor > 0)


def test_poles_under_a_chosen_observer_are_those_of_a_matrix_made_by_hand():
    # x' = A x + B K z and z' = A z + B K z + L C (x - z)
    loop = close(trial(loop=SEEN), interpreted=True)
    L = 0.9 * loop.controller.observer.gain
    chosen = loop.at({"observer.gain": L})
    final = loop.controller.reference.final
    plant = flexctl.linearise(loop.truth, loop.truth.straight(final))
    K = linearise_loop(close(trial(), interpreted=True), final, 0.0).feedback
    C = np.eye(2 * len(plant.M))[[0, 1, 4, 5, 2, 3]]  # of [q; v]: joints, their rates, links
    BK, LC = plant.B_state @ K, L @ C
    A = np.block([[plant.A_state, BK], [LC, plant.A_state + BK - LC]])

    assert distance(np.linalg.eigvals(A), flexctl.linearise(chosen).poles) < 1e-9
    own = np.linalg.eigvals(plant.A_state - LC)
    assert distance(own, chosen.controller.observer.poles) < 1e-9


def test_poles_under_a_chosen_fast_loop_are_those_of_a_matrix_made_by_hand():
    # tau = M_rr u - Kp (z - z_qs) - Kv z' with u = -Gp e - Gv e' and z_qs = -K_ff^-1 M_fr u
    loop = close(trial("composite", fast_loop=FAST), interpreted=True)
    Kp, Kv = 0.9 * loop.controller.fast.Kp, 0.7 * loop.controller.fast.Kv
    chosen = loop.at({"fast_loop.Kp": Kp, "fast_loop.Kv": Kv})
    plant = flexctl.linearise(loop.truth, loop.truth.straight(loop.controller.reference.final))
    u, z, rate = np.zeros((2, 8)), np.eye(2, 8, 2), np.eye(2, 8, 6)
    u[:, :2], u[:, 4:6] = -GAINS["Gp"][0] * np.eye(2), -GAINS["Gv"][0] * np.eye(2)
    z_qs = -np.linalg.solve(plant.K[2:, 2:], plant.M[2:, :2] @ u)
    tau = plant.M[:2, :2] @ u - Kp @ (z - z_qs) - Kv @ rate

    found = flexctl.linearise(chosen).poles
    assert distance(np.linalg.eigvals(plant.A_state + plant.B_state @ tau), found) < 1e-9
    assert distance(flexctl.linearise(loop).poles, found) > 1e-4


def test_an_unstable_gain_is_judged_and_not_refused():
    loop = close(trial(second_loop=SECOND), interpreted=True)
    verdict = flexctl.evaluate(loop, {"second_loop.gain": -0.2 * loop.controller.feedback.gain})

    assert verdict.stability.stable is False
    assert any(
        "the second loop is not stable on its design plant" in s for s in verdict.assumptions
    )


def test_an_unstable_observer_says_so():
    loop = close(trial(loop=SEEN), interpreted=True)
    chosen = loop.at({"observer.gain": -loop.controller.observer.gain})
    said = chosen.controller.observer.assumption

    assert "an observer of given gain with" in said
    assert "its slowest pole grows at" in said
    assert flexctl.linearise(chosen).poles.real.max() > 0


@pytest.mark.slow_but("fast loop")
@pytest.mark.skipif(find_compiler() is None, reason="no C compiler here")
def test_nothing_is_compiled_for_chosen_gains(solved, monkeypatch):
    loop, gains = solved
    flexctl.evaluate(loop)
    built = []
    monkeypatch.setattr(library_cache, "_build", lambda *_: built.append(1))
    smaller = {key: 0.95 * np.array(gain) for key, gain in gains.items()}
    verdict = flexctl.evaluate(loop, smaller)

    assert not built
    assert verdict.stability.poles != pytest.approx(flexctl.evaluate(loop).stability.poles)
    (many,) = flexctl.evaluate_many(loop, [smaller])
    assert many.stability.poles == pytest.approx(verdict.stability.poles)


NONE = r"got none$"
BOTH = {"second_loop.gain": np.zeros((2, 8)), "second_loop.weights.effort": 1.0}
SCHEDULED = trial("composite", fast_loop=FAST | {"schedule": 3})


@pytest.mark.usefixtures("no_compiler")
@pytest.mark.parametrize(
    ("design", "values", "words"),
    [
        (
            trial(second_loop=SECOND),
            {"second_loop.gain": np.eye(3)},
            r"^second_loop.gain: expected an array of shape \(2, 8\), got \(3, 3\)$",
        ),
        (
            trial(loop=SEEN),
            {"observer.gain": np.zeros((8, 5))},
            r"^observer.gain: expected an array of shape \(8, 6\), got \(8, 5\)$",
        ),
        (
            trial("composite", fast_loop=FAST),
            {"fast_loop.Kp": np.zeros((2, 2)), "fast_loop.Kv": [[0.0, 0.0]]},
            r"^fast_loop.Kv: expected an array of shape \(2, 2\), got \(1, 2\)$",
        ),
        (
            trial(second_loop=SECOND),
            {"second_loop.gain": np.full((2, 8), np.nan)},
            r"^second_loop.gain: expected finite numbers, got array\(\[\[nan",
        ),
        (
            trial(second_loop=SECOND),
            {"second_loop.gain": [[1.0, 2.0], [3.0]]},
            "^second_loop.gain: expected numbers, got ",
        ),
        (
            trial(second_loop=SECOND),
            {"second_loop.gain": "big"},
            "^second_loop.gain: expected real numbers, got 'big'$",
        ),
        (trial(), {"second_loop.gain": np.zeros((2, 8))}, f"^second_loop.gain: .* {NONE}"),
        (trial(), {"observer.gain": np.zeros((8, 6))}, f"with an observer, {NONE}"),
        (trial(), {"fast_loop.Kp": np.zeros((2, 2))}, f"with a fast loop, {NONE}"),
        (trial(second_loop=SECOND), BOTH, "expected no second_loop.weights.effort beside it"),
        (
            trial("composite", fast_loop=FAST),
            {"fast_loop.Kp": np.zeros((2, 2))},
            "^fast_loop.Kv: expected a value beside the other, got nothing$",
        ),
        (
            SCHEDULED,
            {"fast_loop.Kp": np.zeros((2, 2)), "fast_loop.Kv": np.zeros((2, 2))},
            "fast_loop.schedule",
        ),
    ],
)
def test_gains_that_fit_nothing_are_refused_in_one_line(design, values, words):
    loop = close(design, interpreted=True)
    with pytest.raises(InputError, match=words) as refusal:
        loop.at(values)
    assert "\n" not in str(refusal.value)


@pytest.mark.usefixtures("no_compiler")
def test_a_gain_of_a_file_is_that_of_the_loop_it_was_chosen_for():
    loop = close(trial(second_loop=SECOND), interpreted=True)
    gain = (0.9 * loop.controller.feedback.gain).tolist()
    given = close(trial(second_loop={"gain": gain}), interpreted=True)
    chosen = loop.at({"second_loop.gain": gain})

    assert given.controller.design == chosen.controller.design
    np.testing.assert_array_equal(given.law_numbers, chosen.law_numbers)
    all_weights = {f"second_loop.weights.{k}": x for k, x in SECOND["weights"].items()}
    np.testing.assert_array_equal(given.at(all_weights).law_numbers, loop.law_numbers)
    with pytest.raises(InputError, match=r"second_loop.weights.effort: expected a value"):
        given.at({"second_loop.weights.joint_error": 3.0})


@pytest.mark.parametrize(
    ("second", "words"),
    [
        (SECOND | {"gain": [[1.0]]}, "second_loop.gain: expected no such key beside weights"),
        (
            {"switch": "end"},
            "second_loop.weights: expected a value .or decay or gain in its place., got",
        ),
        ({"gain": [[1.0]], "decay": 3.0}, "second_loop.gain: expected no such key beside decay"),
        ({"gain": [[1.0, "a"]]}, r"second_loop.gain\[1\]\[2\]: expected a number"),
    ],
)
def test_a_second_loop_has_either_weights_or_a_gain(second, words):
    table = trial(second_loop=SECOND).table() | {"second_loop": second}
    with pytest.raises(InputError, match=words):
        build_file(Design, table, "trial", None)


@pytest.mark.usefixtures("no_compiler")
def test_a_gain_of_a_file_for_another_basis_is_refused_with_the_file():
    design = trial(second_loop={"gain": np.zeros((2, 4)).tolist()})
    words = r"^trial: second_loop.gain: expected an array of shape \(2, 8\), got \(2, 4\)$"
    with pytest.raises(InputError, match=words):
        close(design, interpreted=True)


def test_several_numbers_are_set_at_once_and_checked_together():
    design = with_values(
        trial(), {"gains.Gi": [3.0, 0.0], "gains.Gp": [9.0, 9.0]} | {"gains.Gi": 1.0}
    )

    assert design.gains.Gi == (1.0,)
    assert design.gains.Gp == (9.0, 9.0)
