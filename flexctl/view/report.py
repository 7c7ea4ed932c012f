"""The report of a comparison: one self-contained HTML file."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from flexctl import __version__
from flexctl.plant import assemble_plant
from flexctl.search import Scatter
from flexctl.verdict import Comparison, Evaluation
from flexctl.view.comparison_rows import metric_rows, rank_of, ranked, why_unranked
from flexctl.view.figures.arm import plot_stills
from flexctl.view.figures.bars import plot_margins
from flexctl.view.figures.curves import (
    Curve,
    band_words,
    plot_deflections,
    plot_joint_errors,
    plot_tip_error,
    plot_torques,
    plot_wind_up,
)
from flexctl.view.figures.eigenvalues import plot_orders, plot_path, plot_poles
from flexctl.view.figures.loop_gains import (
    MOST,
    actuator_responses,
    plot_loop_curves,
    plot_loop_gains,
    plot_loop_sensitivities,
    plot_readings,
    reading_responses,
)
from flexctl.view.figures.pages import add_legend, in_order, make_curves
from flexctl.view.figures.style import Canvas, Look, new_figure, split, styled, to_data_url
from flexctl.view.figures.sweep import plot_sweep
from flexctl.view.output import said
from flexctl.view.words.numbers import basis_words
from flexctl.view.words.scatter import scatter_rows

_PAGE = 10.0  # inches that a figure as wide as the page has


@dataclass(frozen=True, kw_only=True)
class Image:
    """A figure of the report: address that holds it, width [% of the page]."""

    url: str
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
    made: str,
    scatter: Scatter | None = None,
) -> str:
    """Render a comparison as HTML that refers to nothing outside itself.

    `answer` is what `flexctl compare --json` prints of it, `made` what it was made of, as JSON.
    """
    columns, arm = ranked(answer), comparison.true_arm
    curves = make_curves(in_order(comparison), faces)
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
        images=_images(comparison, curves, faces) | (_spread(scatter, faces) if scatter else {}),
        scatter=scatter and {"n": scatter.n, "rows": scatter_rows(scatter)},
        band=", ".join(band_words(curves)),
        best=_best(comparison, curves).name if curves else "",
        assumptions=_assumptions(comparison.evaluations),
        version=__version__,
        made=json.dumps(json.loads(made), indent=1, ensure_ascii=False),
        warnings=said,
    )


def _column(
    answer: Mapping[str, Any], evaluation: Mapping[str, Any], faces: Mapping[str, Look]
) -> Column:
    name, ranking = evaluation["design"], answer["ranking"]
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


def _images(
    comparison: Comparison, curves: Sequence[Curve], faces: Mapping[str, Look]
) -> dict[str, Image]:
    """Draw what there is to see of the verdicts, and of the runs if there are any."""
    images, evaluations = {}, in_order(comparison)
    if curves:
        images["tip error"] = _image((10.0, 4.0), lambda canvas: plot_tip_error(canvas, curves))
    if any(e.stability is not None for e in evaluations):
        high = 0.9 + 0.38 * len(evaluations)
        images["poles"] = _image((10.0, 4.6), lambda part: plot_poles(part, evaluations, faces))
        images["margins"] = _image(
            (10.0, high), lambda part: plot_margins(part, evaluations, faces)
        )
        images |= _frequency_images(evaluations, faces)
        images["path"] = _image(
            (10.0, 3.6), lambda part: _path_and_orders(part, evaluations, faces)
        )
    return images | (_run_images(comparison, curves) if curves else {})


def _frequency_images(
    evaluations: Sequence[Evaluation], faces: Mapping[str, Look]
) -> dict[str, Image]:
    """Draw frequency responses at the actuators, and at the worst reading of each design."""
    images = {}
    if found := actuator_responses(evaluations):
        joints = min(len(next(iter(found.values())).at("actuator")), MOST)
        curves = (0.8 + 2.9 * max(joints, 2), 6.4)
        images["loop gains"] = _image((10.0, 5.2), lambda part: plot_loop_gains(part, found, faces))
        images["sensitivities"] = _image(
            (10.0, 5.2), lambda part: plot_loop_sensitivities(part, found, faces)
        )
        images["loop curves"] = _image(curves, lambda part: plot_loop_curves(part, found, faces))
    if readings := reading_responses(evaluations):
        wide, rows = min(len(readings), MOST), -(-len(readings) // MOST)
        size = (2.5 * wide, 0.3 + 3.0 * rows)
        images["readings"] = _image(size, lambda part: plot_readings(part, readings))
    return images


def _run_images(comparison: Comparison, curves: Sequence[Curve]) -> dict[str, Image]:
    arm, run = comparison.true_arm, _best(comparison, curves).run
    plant = assemble_plant(arm, comparison.truth, interpreted=True)
    high = 0.8 + 2.2 * -(-len(run.deflection) // 2)
    images = {
        "stills": _image((7.6, 5.2), lambda canvas: plot_stills(canvas, plant, run)),
        "errors": _image((10.0, 3.0), lambda canvas: plot_joint_errors(canvas, curves, arm)),
        "torques": _image((10.0, 3.0), lambda canvas: plot_torques(canvas, curves, arm)),
    }
    if run.rotors:
        images["wind-up"] = _image((10.0, 3.0), lambda part: plot_wind_up(part, curves, arm))
    if run.deflection:
        images["deflections"] = _image((10.0, high), lambda part: plot_deflections(part, curves))
    return images


def _spread(scatter: Scatter, faces: Mapping[str, Look]) -> dict[str, Image]:
    keys = ("residual.tip_error_max", "margins.disk")
    figure = plot_sweep(scatter.sweep, "histogram", keys, looks_of=faces)
    return {"scatter": Image(url=to_data_url(figure), width=72.0)}


def _best(comparison: Comparison, curves: Sequence[Curve]) -> Curve:
    """Return the run of the design that ranks first, or the first that has one."""
    return next((curve for curve in curves if curve.name in comparison.ranking[:1]), curves[0])


def _path_and_orders(
    canvas: Canvas, evaluations: Sequence[Evaluation], faces: Mapping[str, Look]
) -> None:
    left, right = split(canvas, 1, 2)
    plot_path(left, evaluations, faces)
    plot_orders(right, evaluations, faces)


def _image(size: tuple[float, float], draw: Callable[[Canvas], None]) -> Image:
    with styled():
        figure = new_figure(*size)
        draw(figure)
        add_legend(figure)
    return Image(url=to_data_url(figure), width=100 * size[0] / _PAGE)
