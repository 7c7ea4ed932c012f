"""The report of a comparison: one self-contained HTML file."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from flexctl import __version__
from flexctl.model import Arm
from flexctl.plant import assemble_plant
from flexctl.verdict import Comparison, Evaluation
from flexctl.view import figures
from flexctl.view.comparison_rows import metric_rows, rank_of, ranked, why_unranked
from flexctl.view.figures.style import Canvas, Look, new_figure, split, styled, to_data_url
from flexctl.view.output import said
from flexctl.view.signals import motion_end
from flexctl.view.words.numbers import basis_words

_PAGE = 10.0  # inches that a figure as wide as the page has


@dataclass(frozen=True, kw_only=True)
class Picture:
    """A figure of the report: address of the image, what to read off it, width [% of the page]."""

    title: str
    url: str
    caption: str
    width: float


@dataclass(frozen=True, kw_only=True)
class Column:
    """Head of a design's column in the table."""

    name: str
    method: str
    rank: int | None
    colour: str
    remark: str


def render_report(
    comparison: Comparison,
    answer: Mapping[str, Any],
    faces: Mapping[str, Look],
    made: str = "{}",
) -> str:
    """Render a comparison as HTML that refers to nothing outside itself.

    Parameters
    ----------
    comparison
        Verdicts with their runs.
    answer
        The same as `flexctl compare --json` prints it.
    faces
        How every design is drawn.
    made
        What the comparison was made of, as JSON.
    """
    columns, arm = ranked(answer), comparison.true_arm
    environment = Environment(
        loader=PackageLoader("flexctl.view", ""), autoescape=True, undefined=StrictUndefined
    )
    return environment.get_template("report.html.jinja").render(
        answer=answer,
        summary=arm.summary,
        source=arm.source,
        truth=basis_words(answer["truth"]),
        columns=[_column(answer, e, faces) for e in columns],
        rows=metric_rows(columns, arm),
        pictures=list(_pictures(comparison, arm, faces)),
        assumptions=_assumptions(comparison.evaluations),
        version=__version__,
        made=json.dumps(json.loads(made), indent=1, ensure_ascii=False),
        warnings=said,
    )


def _column(
    answer: Mapping[str, Any], evaluation: Mapping[str, Any], faces: Mapping[str, Look]
) -> Column:
    name = evaluation["design"]
    ranking = answer["ranking"]
    return Column(
        name=name,
        method=f"{evaluation['method']}, design plant: {basis_words(evaluation['basis'])}",
        rank=rank_of(name, ranking),
        colour=faces[name].colour,
        remark="" if name in ranking else why_unranked(evaluation),
    )


def _assumptions(evaluations: Sequence[Evaluation]) -> list[tuple[str, str]]:
    """List every assumption once, with the designs that it holds for."""
    holders: dict[str, list[str]] = {}
    for e in evaluations:
        for sentence in e.assumptions:
            holders.setdefault(sentence, []).append(e.name)
    everyone = len([e for e in evaluations if e.assumptions])
    return [
        (sentence, "all designs" if len(names) == everyone else ", ".join(names))
        for sentence, names in holders.items()
    ]


def _pictures(comparison: Comparison, arm: Arm, faces: Mapping[str, Look]) -> Iterator[Picture]:
    evaluations, band = figures.ranked(comparison), comparison.evaluations[0].settle_within
    curves = figures.make_curves(evaluations, faces, band)
    if curves:
        yield _picture(
            "Tip error and residual vibration",
            f"Distance of the tip from where it should be: during the motion from the tip of the "
            f"rigid arm, after it (dotted line) from the tip at rest with its static sag. A "
            f"design has settled where its thick line, the largest error still to come, falls "
            f"below the green band's edge at {1e3 * band:g} mm; one that stays above it has not "
            f"settled. The last tenth of the rest is too short to tell and has no thick line.",
            (10.0, 4.0),
            lambda canvas: figures.plot_tip_error(canvas, curves),
        )
    if any(e.stability is not None for e in evaluations):
        yield _picture(
            "Closed-loop eigenvalues",
            "Closed-loop eigenvalues of the truth loop, linearised about the equilibrium at the "
            "final pose, upper half plane. Further left decays faster; dotted rays are lines of "
            "equal damping ratio. Eigenvalues in the red half are unstable.",
            (10.0, 4.6),
            lambda canvas: figures.plot_poles(canvas, evaluations, faces),
        )
        yield _picture(
            "Stability margins at the actuators",
            "Worst joint's gain, phase and delay margin with the other loops closed, and the "
            "disk margin for all joints at once. Longer bars are safer; with short ones a "
            "small modelling error or delay destabilises.",
            (10.0, 0.9 + 0.38 * len(evaluations)),
            lambda canvas: figures.plot_margins(canvas, evaluations, faces),
        )
        yield _picture(
            "Along the motion, and on a finer truth",
            "Left: largest real part of the eigenvalues with the reference held still at poses "
            "of the gross motion, where only the joint loop acts. Right: the same at the final "
            "pose as the truth plant is refined; a line that crosses into the red is spillover.",
            (10.0, 3.6),
            lambda canvas: _path_and_orders(canvas, evaluations, faces),
        )
    if curves:
        yield from _run_pictures(comparison, curves, arm)


def _run_pictures(
    comparison: Comparison, curves: Sequence[figures.Curve], arm: Arm
) -> Iterator[Picture]:
    best = next((c for c in curves if c.name in comparison.ranking[:1]), curves[0])
    plant = assemble_plant(arm, comparison.truth, interpreted=True)
    yield _picture(
        f"The arm in motion ({best.name})",
        "The truth plant at even steps along the reference, light to dark. Dashed is the rigid "
        "arm at the same joints: the gap between both is the deflection of the links.",
        (7.6, 5.2),
        lambda canvas: figures.plot_stills(canvas, plant, best.run, motion_end(best.run)),
    )
    yield _picture(
        "Joint errors",
        "Joint minus reference. Small joint errors do not mean a small tip error: compare with "
        "the deflections below.",
        (10.0, 3.0),
        lambda canvas: figures.plot_joint_errors(canvas, curves, arm),
    )
    if best.run.rotors:
        yield _picture(
            "Wind-up of the joints",
            "Rotor minus joint: the deflection of a joint's spring, which the motor's encoder does "
            "not measure.",
            (10.0, 3.0),
            lambda canvas: figures.plot_wind_up(canvas, curves, arm),
        )
    if best.run.deflection:
        rows = -(-len(best.run.deflection) // 2)
        yield _picture(
            "Deflections of the links",
            "Deflection at the end of every elastic line. What goes on after the dotted line is "
            "residual vibration.",
            (10.0, 0.8 + 2.2 * rows),
            lambda canvas: figures.plot_deflections(canvas, curves),
        )
    yield _picture(
        "Torques and forces",
        "Actuator torques and forces. Fast ripple after the end of the motion is the second loop "
        "damping the links; a flat top is a torque limit.",
        (10.0, 3.0),
        lambda canvas: figures.plot_torques(canvas, curves, arm),
    )


def _path_and_orders(
    canvas: Canvas, evaluations: Sequence[Evaluation], faces: Mapping[str, Look]
) -> None:
    left, right = split(canvas, 1, 2)
    figures.plot_path(left, evaluations, faces)
    figures.plot_orders(right, evaluations, faces)


def _picture(
    title: str, caption: str, size: tuple[float, float], draw: Callable[[Canvas], None]
) -> Picture:
    with styled():
        figure = new_figure(*size)
        draw(figure)
        figures.add_legend(figure)
    url = to_data_url(figure)
    return Picture(title=title, url=url, caption=caption, width=100 * size[0] / _PAGE)
