"""Keys of answers that are known before the work: --require refuses others at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

VALUE, LIST, ANY = "value", "list", "any"
"""What is below a key: nothing, entries counted from 0, or what only the answer tells."""

Known = Mapping[str, Any]
"""What is below each key: one of these words, or keys in turn."""


def known_of_comparison(designs: int) -> Known:
    """Return the keys of a comparison of so many designs, the baseline among them."""
    one = known_of_evaluation()
    return {
        **_all(VALUE, "model winner verdict"),
        **_all(LIST, "ranking motions run_lengths"),
        **_all(ANY, "truth scatter warnings provenance"),
        "evaluations": {str(k): one for k in range(designs)},
    }


def known_of_tuning() -> Known:
    """Return the keys of a tuning."""
    one = known_of_evaluation()
    return {
        **_all(
            VALUE,
            "model design improved feasible untied quantile certified evaluations seconds "
            "interrupted resumed verdict",
        ),
        **_all(
            ANY,
            "truth constraints values values_before nearby free over scaled arms judged_on "
            "worst_arm conflict unseen shape_error starts worst no_verdict tuned warnings "
            "provenance",
        ),
        "objective": _all(VALUE, "name nominal before after") | {"metrics": ANY},
        "before": one,
        "after": one,
    }


def known_of_evaluation() -> Known:
    """Return the keys of an evaluation."""
    return {
        **_all(VALUE, "design method energy_residual settle_within no_rest failed"),
        **_all(ANY, "not_computed reasons"),
        **_all(LIST, "saturated_seconds position_excess assumptions"),
        **dict.fromkeys(("basis", "truth"), ANY),
        "tracking": _all(VALUE, "tip_error_max tip_error_rms") | {"joint_error_max": LIST},
        "rest": _all(VALUE, "exists tip_offset holds falls elsewhere")
        | _all(LIST, "joint offset holding_torque limit"),
        "residual": _all(VALUE, "tip_error_max settling_time tip_error_end"),
        "effort": _all(LIST, "peak rms saturated_seconds units") | {"energy": VALUE},
        "stability": {
            **_all(
                VALUE,
                "spectral_abscissa min_damping_ratio stable settles_at_order design_abscissa",
            ),
            **_all(LIST, "path_spectral_abscissa path_t"),
            "poles": _all(LIST, "re im"),
        },
        "margins": {
            **_all(
                LIST,
                "gain_db gain_up_db gain_down_db phase_deg delay_seconds joint_sensitivity_peak "
                "joint_complementary_peak",
            ),
            **_all(
                VALUE,
                "common_delay_seconds delay_may_be_less disk disk_frequency sensitivity_peak "
                "sensitivity_frequency complementary_peak complementary_frequency "
                "min_sampling_rate sampling_rate_limited_by no_sensors",
            ),
            "sensors": {
                **_all(
                    LIST,
                    "readings gain_db gain_up_db gain_down_db phase_deg delay_seconds "
                    "reading_disk reading_sensitivity_peak reading_complementary_peak",
                ),
                **_all(VALUE, "delay_may_be_less disk disk_frequency"),
            },
        },
        "noise": _all(VALUE, "tip_rms rounded") | {"torque_rms": LIST},
        "neglected": _all(VALUE, "t peak frequency scaled_peak proven stable why")
        | dict.fromkeys(("unstable_poles", "spectral_abscissa"), _all(VALUE, "design truth")),
        "stiffness": {
            "lemma": _all(VALUE, "lambda_max_H alpha_star") | {"basis": ANY},
            "exact": _all(
                VALUE,
                "alpha_upper alpha_lower mode crossing_frequency proven path_alpha_upper path_t "
                "path_alpha_lower path_t_lower path_growth path_growth_error path_growth_from "
                "path_growth_to",
            ),
        },
        "friction": {
            **_all(
                VALUE,
                "stable slides amplitude sticking_offset hunts creeps held_frequency "
                "held_damping_ratio",
            ),
            "weak": LIST,
            "dampers": ANY,
        },
        "spillover": _all(LIST, "order spectral_abscissa path_spectral_abscissa"),
        "cost": _all(VALUE, "law_mul law_add law_other"),
    }


def _all(what: str, names: str) -> dict[str, Any]:
    return dict.fromkeys(names.split(), what)
