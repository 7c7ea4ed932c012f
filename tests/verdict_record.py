"""Evaluations made by hand, and where the numbers of a verdict's words stand in them.

No two of their numbers are alike: so every number of a sentence stands in one place of the record,
and that is where it was read.
"""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np

from flexctl.loop.final_equilibrium import FinalEquilibrium
from flexctl.model.record import BasisChoice
from flexctl.verdict.comparison import Comparison
from flexctl.verdict.evaluation import Evaluation
from flexctl.verdict.margins import StabilityMargins
from flexctl.verdict.performance import Effort, Residual, Tracking
from flexctl.verdict.stability import Stability
from flexctl.view.explain import explain
from flexctl.view.to_json import to_json
from tests.numbers_in_words import sources

SETTLED = {"residual.tip_error_max", "residual.settling_time"}
THIN = {"disk": 0.2813, "phase_deg": np.array([17.3, 16.1, 19.4])}
DIMENSIONS = {
    "tip_error_max": "m", "tip_error_rms": "m", "tip_error_end": "m", "settling_time": "s",
    "joint_error_max": "rad", "peak": "N m", "rms": "N m", "energy": "J",
    "saturated_seconds": "s", "poles": "1/s", "spectral_abscissa": "1/s",
    "path_spectral_abscissa": "1/s", "path_t": "s", "gain_db": "dB", "gain_up_db": "dB",
    "gain_down_db": "dB", "phase_deg": "deg", "delay_seconds": "s", "common_delay_seconds": "s",
    "disk_frequency": "rad/s", "sensitivity_frequency": "rad/s",
    "complementary_frequency": "rad/s",
    "min_sampling_rate": "Hz", "crossing_frequency": "rad/s", "tip_offset": "m",
    "holding_torque": "N m", "limit": "N m", "settle_within": "m", "offset": "rad",
}  # fmt: skip


def evaluation(name, k=1.0, **changes):
    """An evaluation without a caveat; figures of another k are k times as large."""
    stability = Stability(
        poles=-np.array([2.17 * k + 31.9j, 2.17 * k - 31.9j, 8.4 * k]),
        stable=True,
        path_t=np.array([0.0, 0.537, 1.079]),
        path_abscissa=np.array([-3.31, -1.83, -2.57]) * k,
        orders=(1, 2, 4, 6, 8),
        abscissae=tuple(-x * k for x in (2.37, 2.19, 2.13, 2.11, 2.09)),
        path_abscissae=(np.nan, np.nan, -1.97 * k, -1.95 * k, -1.93 * k),
        path_times=(np.nan, np.nan, 0.537, 0.537, 0.537),
        settles_at_order=4,
    )
    margins = StabilityMargins(
        gain_up_db=np.array([14.3, 11.6, 16.9]) * k,
        gain_down_db=np.array([9.7, 21.2, 12.8]) * k,
        phase_deg=np.array([47.3, 56.1, 39.4]) * k,
        delay_seconds=np.array([0.0191, 0.0133, 0.0277]) * k,
        common_delay_seconds=0.0114 * k,
        disk=0.73 * k,
        disk_frequency=26.3 * k,
        sensitivity_peak=2.27 * k,
        sensitivity_frequency=31.3 * k,
        complementary_peak=1.87 * k,
        complementary_frequency=28.7 * k,
        joint_sensitivity_peak=np.array([1.57, 2.03, 1.41]) * k,
        joint_complementary_peak=np.array([1.23, 1.67, 1.13]) * k,
    )
    return Evaluation(
        **{
            "name": name, "method": "decoupling", "basis": BasisChoice(order=2),
            "truth": BasisChoice(kind="elements", order=4),
            "cost": {"law_mul": 613, "law_add": 487, "law_other": 29}, "assumptions": (),
            "tracking": Tracking(
                joint_error_max=np.array([0.00141, 0.00262, 0.00383]) * k,
                tip_error_max=0.0219 * k, tip_error_rms=0.0117 * k,
            ),
            "residual": Residual(
                tip_error_max=0.00673 * k, settling_time=0.439 * k, tip_error_end=0.000781 * k
            ),
            "effort": Effort(
                peak=np.array([71.0, 52.0, 33.0]) * k, rms=np.array([17.0, 13.0, 9.1]) * k,
                energy=92.0 * k, saturated_seconds=np.zeros(3),
            ),
            "stability": stability, "margins": margins, "min_sampling_rate": 347.0 * k,
            "stiffness": stiffness(0.271, 0.183),
        }
        | changes
    )  # fmt: skip


def stiffness(here, on_the_way, exact=True, proven=True, growth=None):
    """A tolerance of the stiffness at the final pose and on the way; NaN: not known there."""
    end = SimpleNamespace(mode="link2.y.1", frequency=58.9)
    interval = SimpleNamespace(
        alpha_upper=here, alpha_lower=-0.613, upper=end, lower=None, proven=proven
    )
    lemma = SimpleNamespace(lambda_max=7.7, alpha_star=0.0917, basis=None)
    return SimpleNamespace(
        exact=interval if exact else None,
        path_upper=on_the_way,
        path_t=0.811,
        path_proven=proven,
        path_lower=-0.417,
        path_lower_t=0.233,
        path_growth=growth,
        lemma=lemma,
    )


def verdict(ranked, evaluations):
    """The words of a comparison of these, the ranked ones best first and among them."""
    assert {id(e) for e in ranked} <= {id(e) for e in evaluations}
    comparison = Comparison(
        model="arm",
        true_arm=None,
        truth=BasisChoice(kind="elements", order=4),
        backend="none",
        evaluations=tuple(evaluations),
        ranking=tuple(e.name for e in ranked),
    )
    return explain(comparison)


def read(ranked, evaluations=None):
    """The words of a verdict and where its numbers stand, as "design.path"."""
    evaluations = evaluations or ranked
    words = verdict(ranked, evaluations)
    record = {e.name: once(to_json(e)) for e in evaluations}
    plain = words
    for e in evaluations:  # what a design or a reason is called holds no numbers of the record
        for said in (e.failed, e.no_rest):
            plain = plain.replace(said, "") if said else plain
    return words, sources(plain, record, DIMENSIONS)


def once(answer):
    """Leave out what stands in the record twice by its nature, as the nearer of two limits."""
    answer.pop("saturated_seconds")
    answer.pop("reasons")
    for part, keys in {"margins": ("gain_up_db", "gain_down_db"), "stability": ("poles",)}.items():
        for key in keys:
            (answer[part] or {}).pop(key, None)
    return answer


def of(places, name):
    return {place.partition(".")[2] for place in places if place.startswith(f"{name}.")}


def changed(e, **changes):
    return replace(e, stability=replace(e.stability, **changes))


def resting(**changes):
    """Where an arm of three joints, the last of them sliding, rests."""
    return FinalEquilibrium(
        **{
            "exists": True, "joint": np.array([0.5, 0.6, 0.7]),
            "offset": np.array([0.00517, -0.171, 0.00233]), "tip_offset": 0.0329,
            "holding_torque": np.array([13.1, 7.13, 1.91]), "limit": np.array([20.3, 15.7, 9.37]),
            "sliding": frozenset({2}),
        }
        | changes
    )  # fmt: skip
