"""Records in sentences: what a result means, with its reasons and its caveats."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flexctl.control import Controller
from flexctl.loci import EigenvalueLoci
from flexctl.loop import ClosedLoop, LinearLoop
from flexctl.model import Arm, BasisChoice, Design
from flexctl.plant import LinearPlant, Plant
from flexctl.robustness import Certificate, StiffnessMargin, TimeScaleMargin
from flexctl.search import (
    ControllerStructure,
    Scatter,
    Stabilisation,
    Sweep,
    Synthesis,
    TradeOff,
    Tuning,
)
from flexctl.simulation import Trajectory
from flexctl.verdict import Comparison, Evaluation, LoopResponses, SensorMargins, StabilityMargins
from flexctl.view.to_json import writer_of
from flexctl.view.words import parts
from flexctl.view.words.loci import loci_words
from flexctl.view.words.margins import (
    certificate_words,
    margin_words,
    sensor_margin_words,
    stability_margin_words,
    time_scale_words,
)
from flexctl.view.words.responses import responses_words
from flexctl.view.words.scatter import scatter_words
from flexctl.view.words.sweep import sweep_words
from flexctl.view.words.synthesis import stabilisation_words, structure_words, synthesis_words
from flexctl.view.words.tuning import trade_off_words, tuning_words
from flexctl.view.words.verdict import evaluation_words, verdict


def explain(record: object) -> str:
    """Say what a result means: the verdict, the reasons for it, and its caveats.

    Parameters
    ----------
    record
        Any record of `flexctl`; of arms, designs, plants and loops it says what they are.

    Raises
    ------
    InputError
        When it is no record of these kinds.

    Examples
    --------
    >>> import flexctl
    >>> controller = flexctl.design_controller("single-link-hub", "hub-pd")
    >>> loop = flexctl.close_loop(controller, "single-link-hub", modes=2)
    >>> flexctl.explain(flexctl.evaluate(loop))
    'hub-pd: After the motion its tip error is at most 241 mm and settles within 1.18 s.'
    """
    return writer_of(record, _WORDS, "explain")(record)


_WORDS: dict[type, Callable[[Any], str]] = {
    Arm: parts.arm_words,
    BasisChoice: parts.per_link,
    Certificate: certificate_words,
    ClosedLoop: parts.loop_words,
    Comparison: verdict,
    Controller: parts.controller_words,
    ControllerStructure: structure_words,
    Design: parts.design_words,
    EigenvalueLoci: loci_words,
    Evaluation: evaluation_words,
    LinearLoop: parts.linear_loop_words,
    LinearPlant: parts.linear_plant_words,
    LoopResponses: responses_words,
    Plant: parts.plant_words,
    SensorMargins: sensor_margin_words,
    StabilityMargins: stability_margin_words,
    StiffnessMargin: margin_words,
    Scatter: scatter_words,
    Stabilisation: stabilisation_words,
    Sweep: sweep_words,
    Synthesis: synthesis_words,
    TimeScaleMargin: time_scale_words,
    TradeOff: trade_off_words,
    Trajectory: parts.run_words,
    Tuning: tuning_words,
}
