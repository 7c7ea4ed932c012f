"""``flexctl margin``: how wrong the stiffness of a design's model may be."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from flexctl.errors import InputError
from flexctl.model import Arm, load_ratios
from flexctl.records import plain
from flexctl.robustness import (
    ORDERS,
    Case,
    RatioError,
    StiffnessMargin,
    check_errors,
    stiffness_margin,
)
from flexctl.search import (
    BiasAdvice,
    BiasRuns,
    DampingChart,
    GainChart,
    Remedies,
    advise_bias,
    damping_chart,
    find_remedies,
    gain_chart,
)
from flexctl.view.commands.margin_table import margin_table
from flexctl.view.json.margins import bias_json, margin_json, remedies_json
from flexctl.view.options import MarginOptions
from flexctl.view.output import Result, check_targets, progress
from flexctl.view.provenance import integration, provenance, redesigned
from flexctl.view.request import (
    judged_on,
    load_arm,
    load_gain_set,
    read_number,
    read_pose,
    truth_settings,
    warn_of_pose,
)
from flexctl.view.words.bias import advice_words
from flexctl.view.words.margins import margin_words

_N_POSES = 5  # poses of the motion at which remedies and charts are judged
_CHARTS = {"gains": gain_chart, "damping": damping_chart}


def measure_margin(options: MarginOptions, model: str, word: str) -> Result:
    """Compute what `flexctl margin` prints: the margin, remedies, a chart and advice on a bias."""
    check_targets(options)
    sizes = read_errors(options.errors, independent=not options.no_structured)
    _check_numbers(options)
    ratios = load_ratios(options.stiffness) if options.stiffness else None
    arm = load_arm(model, options)
    design = load_gain_set(word, arm)
    judged, unknown = judged_on(options, arm, design), options.unknown_damping
    few = min(options.path, _N_POSES)
    case = Case.of(arm, design, n_path=few, unknown_damping=unknown, **judged)
    _check_case(case)
    joints = read_joints(options.pose, arm)
    with progress() as say, named(options.stiffness):
        margin = stiffness_margin(
            arm,
            design,
            **judged,
            pose=joints or None,
            n_path=options.path,
            errors=sizes,
            stiffness=ratios,
            orders=ORDERS if options.orders else (),
            unknown_damping=unknown,
            run=options.run,
            certify=options.certify,
            time_limit=options.time_limit,
            progress=say,
        )
        runs = BiasRuns(case=case) if options.run else None
        remedies = (
            find_remedies(case, margin, options.need, say, runs)
            if options.need is not None
            else None
        )
        chart = _CHARTS[options.chart](case, progress=say) if options.chart else None
        advice = advise_bias(case, margin, runs, say)
    answer = _answer(options, sizes, margin, remedies, advice, chart)
    made = provenance(
        model,
        [design],
        gains=lambda: redesigned(arm, design, judged["design_basis"]),
        tolerances=integration(),
    )
    return Result(
        answer=answer,
        table=lambda: margin_table(margin, answer["verdict"], remedies),
        figure=lambda: _figure(margin, chart),
        provenance=made,
    )


def _figure(margin: StiffnessMargin, chart: GainChart | DampingChart | None) -> Any:
    from flexctl.view.figures.margin import plot_margin
    from flexctl.view.figures.margin_charts import plot_chart

    return plot_chart(chart) if chart else plot_margin(margin)


def _check_numbers(options: MarginOptions) -> None:
    """Refuse a time limit or a required overestimate that is not above 0 and finite.

    Also a time limit without the bounds that it is for.
    """
    if not 0 < options.time_limit < float("inf"):
        raise InputError(f"--time-limit: expected seconds above 0, got {options.time_limit:g}")
    limited = options.time_limit != MarginOptions.time_limit  # the default is no request
    if options.no_structured and limited:
        got = f"{options.time_limit:g}"
        raise InputError(f"--time-limit: expected none with --no-structured, got {got}")
    if options.need is not None and not 0 < options.need < float("inf"):
        raise InputError(f"--need: expected an overestimate above 0, got {options.need:g}")


def _answer(
    options: MarginOptions,
    errors: Mapping[str, float],
    margin: StiffnessMargin,
    remedies: Remedies | None,
    advice: BiasAdvice | None,
    chart: GainChart | DampingChart | None,
) -> dict[str, Any]:
    """JSON object of `flexctl margin`, without provenance."""
    answer = margin_json(margin)
    answer["errors"] = errors or None
    answer["truth"]["settings"] = truth_settings(options)
    found = remedies_json(remedies) if remedies else {}
    answer["remedies"] = plain({**found, "bias": advice and bias_json(advice)})
    answer["verdict"] = margin_words(margin, advice_words(advice, along=bool(margin.path)))
    if chart:
        answer["chart"] = plain(asdict(chart))
    return answer


@contextmanager
def named(path: Path | None) -> Iterator[None]:
    """Put the name of the file of ratios before what is wrong with one of them."""
    try:
        yield
    except RatioError as error:
        raise InputError(f"{path}: {error}") from error


def _check_case(case: Case) -> None:
    """Refuse what has no margin, by its file: rigid arms."""
    arm = case.setup.design_arm
    if not arm.rotors and not any(link.flexible for link in arm.links):
        with_stiffness = "an arm with a flexible link or joint, whose stiffness may be wrong"
        instead = "flexctl track --over payload.mass=FROM:TO follows its eigenvalues"
        raise InputError(
            f"{arm.label}: margin: expected {with_stiffness}, got a rigid one ({instead})"
        )


def read_joints(texts: Sequence[str], arm: Arm) -> dict[str, float]:
    """Read joint variables by name, all that a pose at rest has; InputError for other names."""
    pose = read_pose(texts)
    for name in pose:
        if name not in arm.joints:
            expected = f"joint variables of {arm.name} ({', '.join(arm.joints)})"
            raise InputError(f"--pose: expected {expected}, got {name!r}")
    warn_of_pose(arm, pose)
    return pose


def read_errors(words: Sequence[str], *, independent: bool) -> dict[str, float]:
    """Read ``modes`` or ``payload=0.5``, each once; nothing where no bounds are asked for.

    InputError where an error is not known or comes twice, or any comes with --no-structured.
    """
    if not independent:
        if words:
            raise InputError(f"--errors: expected none with --no-structured, got {words[0]!r}")
        return {}
    sizes: dict[str, float] = {}
    for word in words or ("modes",):
        kind, equals, size = (part.strip() for part in word.partition("="))
        if kind in sizes:
            raise InputError(f"--errors: expected every kind once, got {kind!r} again")
        sizes[kind] = read_number("--errors", size) if equals else 1.0
    check_errors(sizes)
    return sizes
