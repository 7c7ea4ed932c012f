"""``flexctl bode``: frequency responses of a loop, broken at its actuators and its sensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from rich.console import Group, RenderableType

from flexctl.control import design_controller
from flexctl.errors import InputError
from flexctl.loop import close_loop
from flexctl.model import nearest
from flexctl.verdict import NO_LIMIT_DB, ChannelResponse, LoopResponses, frequency_response
from flexctl.view.commands.margin import read_joints
from flexctl.view.json.responses import channel_key, responses_json
from flexctl.view.options import BodeOptions
from flexctl.view.output import Result, check_targets, literal, notes, plain_table, progress
from flexctl.view.provenance import provenance, redesigned
from flexctl.view.request import judged_on, load_arm, load_gain_set, truth_settings
from flexctl.view.words.numbers import basis_words, figure
from flexctl.view.words.responses import channel_name, responses_words

_FEW = 3  # crossover frequencies that a table names


def draw_bode(options: BodeOptions, model: str, word: str) -> Result:
    """Find what `flexctl bode` prints."""
    check_targets(options)
    arm = load_arm(model, options)
    design = load_gain_set(word, arm)
    judged = judged_on(options, arm, design)
    joints = read_joints(options.pose, arm)
    with progress() as say:
        say("the controller")
        controller = design_controller(arm, design, judged["design_basis"], interpreted=True)
        loop = close_loop(controller, judged["true_arm"], judged["truth_basis"])
        say("frequency responses")
        record = frequency_response(loop, pose=joints or None, n_path=options.path)
    chosen = choose_channels(record, options.channel)
    answer = responses_json(record)
    answer["basis"] = loop.controller.plant.basis.described()
    answer["truth"] = loop.truth.basis.described()
    answer["truth"]["settings"] = truth_settings(options)
    answer["verdict"] = responses_words(record)
    made = provenance(
        model, [design], gains=lambda: redesigned(arm, design, judged["design_basis"])
    )

    def draw() -> Any:
        from flexctl.view.figures.responses import plot_responses

        return plot_responses(record, options.kind, chosen)

    return Result(
        answer=answer,
        table=lambda: _table(record, answer),
        figure=draw,
        provenance=made,
    )


def choose_channels(record: LoopResponses, names: Sequence[str]) -> tuple[ChannelResponse, ...]:
    """Pick the channels to draw by their keys, or those of a place; by default the actuators."""
    by_key = {channel_key(channel): channel for channel in record.channels}
    chosen = dict[str, ChannelResponse]()
    groups = {
        "actuators": {channel_key(channel): channel for channel in record.at("actuator")},
        "sensors": {channel_key(channel): channel for channel in record.at("sensor")},
    }
    for name in names or ("actuators",):
        key = name.replace(".", "_")
        if key not in by_key and key not in groups:
            hint = nearest(key, (*groups, *by_key))
            expected = f"actuators, sensors or a channel of the loop ({hint})"
            raise InputError(f"--channel: expected {expected}, got {name!r}")
        chosen |= groups[key] if key in groups else {key: by_key[key]}
    return tuple(chosen.values())


def _table(record: LoopResponses, answer: dict[str, Any]) -> RenderableType:
    basis, truth = (basis_words(answer[key]) for key in ("basis", "truth"))
    title = (
        f"{record.model}, judged on {truth} per link and plane, {record.design} designed on {basis}"
    )
    heads = "broken at", "crossover [rad/s]", "gain [dB]", "phase [deg]", "delay [ms]", "disk"
    rows = [_row(channel) for channel in record.channels]
    table = plain_table(title, *heads, "Ms", "Mt", rows=rows, numeric=range(1, 8))
    remarks = []
    if record.peaks and len(record.at("actuator")) > 1:
        Ms, Mt = record.peaks.Ms, record.peaks.Mt
        remarks.append(
            f"all actuators together: Ms = {Ms:.3g}, Mt = {Mt:.3g}, largest singular values; where "
            "units of actuators differ (N m, N, A, V), they depend on them"
        )
    return Group(table, *notes(remarks), literal(answer["verdict"], "bold"))


def _row(channel: ChannelResponse) -> tuple[str, ...]:
    own = channel.margins
    if own is None:
        return channel_name(channel), *("-" * 7)
    gain = "no limit" if own.gain_db >= NO_LIMIT_DB else f"{own.gain_db:.3g}"
    return (
        channel_name(channel),
        _crossovers(own.crossovers.tolist()),
        gain,
        _limited(own.phase_deg),
        _limited(1e3 * own.delay_seconds),
        f"{own.disk:.3g}",
        f"{own.peaks.Ms:.3g}",
        f"{own.peaks.Mt:.3g}",
    )


def _limited(value: float) -> str:
    if np.isnan(value):
        return "-"
    return figure(value) if np.isfinite(value) else "no limit"


def _crossovers(w: Sequence[float]) -> str:
    """Name the frequencies of unit gain; of many the first and the last."""
    if not w:
        return "-"
    shown = [figure(value) for value in w]
    if len(shown) > _FEW:
        shown = [shown[0], "...", shown[-1]]
    return " ".join(shown)
