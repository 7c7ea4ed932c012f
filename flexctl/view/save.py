"""Write a record to a file: its figure, its report, or its JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flexctl import __version__, checks
from flexctl.loci import EigenvalueLoci
from flexctl.records import plain
from flexctl.robustness import StiffnessMargin, TimeScaleMargin
from flexctl.search import Scatter, TradeOff, Tuning
from flexctl.verdict import BASELINE, Comparison
from flexctl.view.json.evaluation import comparison_json
from flexctl.view.output import FIGURES, check_target, replacing, save_figure
from flexctl.view.to_json import to_json
from flexctl.view.tuned_file import tuned_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from flexctl.view.figures.style import Look


def save(record: object, path: str | Path) -> None:
    """Write a record to a file; the suffix selects figure, report or JSON.

    An incomplete file is never left.

    Parameters
    ----------
    record
        A `Comparison`, `EigenvalueLoci`, `StiffnessMargin`, `TimeScaleMargin`, `TradeOff` or
        `Tuning`; any record of `to_json` as .json.
    path
        .svg, .png or .pdf for the figure, .json for `to_json`; .html for the report of a
        comparison, in one file; .toml for the design that a tuning found.

    Raises
    ------
    InputError
        When the record has no file of this kind, or the file cannot be written.

    Examples
    --------
    >>> import flexctl, tempfile, pathlib
    >>> comparison = flexctl.compare("single-link-hub", "hub-pd", baseline=False)
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> flexctl.save(comparison, folder / "report.html")
    >>> [path.name for path in folder.iterdir()]
    ['report.html']
    """
    checks.kind("path", path, str, Path)
    path = Path(path)
    if type(record) not in _FIGURES:
        to_json(record)  # refuses what is no record
    figure = _FIGURES.get(type(record))
    kinds = [*(FIGURES if figure else ()), ".json"]
    kinds += [".html"] if isinstance(record, Comparison) else []
    kinds += [".toml"] if isinstance(record, Tuning) else []
    check_target(f"file of {type(record).__name__}", path, kinds)
    suffix = path.suffix.lower()
    if suffix == ".json":
        text = json.dumps(to_json(record), indent=1, ensure_ascii=False, allow_nan=False) + "\n"
        _write(path, text)
    elif suffix == ".html" and isinstance(record, Comparison):
        answer = comparison_json(record)
        answer["truth"]["settings"] = []
        write_report(path, record, answer, _made_of(record))
    elif suffix == ".toml" and isinstance(record, Tuning):
        _write(path, tuned_text(record, path))
    elif figure:
        save_figure(figure(record), path)


def write_report(
    path: Path,
    comparison: Comparison,
    answer: dict[str, Any],
    made: str,
    scatter: Scatter | None = None,
) -> None:
    """Write the report of a comparison with its JSON; `made` says of what it was made, as JSON."""
    from flexctl.view.report import render_report

    faces = comparison_looks(comparison)
    _write(path, render_report(comparison, plain(answer), faces, made, scatter))


def comparison_looks(comparison: Comparison) -> dict[str, Look]:
    """Choose how every design is drawn, in the order given."""
    from flexctl.view.figures.style import looks

    return looks([e.name for e in comparison.evaluations], baseline=BASELINE)


def comparison_figure(comparison: Comparison) -> Figure:
    """Draw the runs, bars and eigenvalues of a comparison."""
    from flexctl.view.figures.pages import in_order, plot_comparison

    looks = comparison_looks(comparison)
    return plot_comparison(in_order(comparison), comparison.true_arm, looks)


def _write(path: Path, text: str) -> None:
    with replacing(path) as draft:
        draft.write_text(text, encoding="utf-8")


def _made_of(comparison: Comparison) -> str:
    gains = {e.name: e.gains for e in comparison.evaluations}
    arm = comparison.true_arm.table()
    return json.dumps(plain({"version": __version__, "true_arm": arm, "gains": gains}))


def _loci_figure(record: EigenvalueLoci) -> Figure:
    from flexctl.view.figures.loci import plot_loci

    return plot_loci(record)


def _stiffness_figure(record: StiffnessMargin) -> Figure:
    from flexctl.view.figures.margin import plot_margin

    return plot_margin(record)


def _time_scale_figure(record: TimeScaleMargin) -> Figure:
    from flexctl.view.figures.separation import plot_separation

    return plot_separation(record)


def _tuning_figure(record: Tuning) -> Figure:
    from flexctl.view.figures.tuning import plot_tuning

    return plot_tuning(record)


def _trade_off_figure(record: TradeOff) -> Figure:
    from flexctl.view.figures.trade_off import plot_trade_off

    return plot_trade_off(record)


_FIGURES: Mapping[type, Callable[[Any], Figure]] = {
    Comparison: comparison_figure,
    EigenvalueLoci: _loci_figure,
    StiffnessMargin: _stiffness_figure,
    TimeScaleMargin: _time_scale_figure,
    TradeOff: _trade_off_figure,
    Tuning: _tuning_figure,
}
