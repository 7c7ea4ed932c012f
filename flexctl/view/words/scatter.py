"""Gain sets on scattered arms, in sentences."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from flexctl.checks import Array
from flexctl.search import Scatter, Share
from flexctl.view.words.numbers import counted, listed
from flexctl.view.words.sweep import shape_sentences, share_words

_QUANTITIES = (
    ("residual.tip_error_max", 1e3, "mm"),
    ("residual.settling_time", 1.0, "s"),
    ("tracking.tip_error_rms", 1e3, "mm"),
    ("effort.peak", 1.0, None),  # as the arm has it
    ("stability.min_damping_ratio", 100.0, "%"),
    ("margins.disk", 1.0, ""),
    ("margins.common_delay_seconds", 1e3, "ms"),
    ("stiffness.exact.path_alpha_upper", 100.0, "%"),
)


def scatter_words(found: Scatter) -> str:
    """Say which gain set wins most often on the sampled arms, and which fail."""
    return " ".join(scatter_sentences(found))


def scatter_sentences(found: Scatter) -> Iterator[str]:
    """Write who wins, and who is unstable, fails or does not settle, a sentence each."""
    keys = listed([key.removeprefix("truth.") for key in found.sweep.keys])
    best = max(found.wins, key=lambda name: found.wins[name].count)
    if len(found.wins) > 1 and found.wins[best].count:
        share = _share(found, found.wins[best])
        yield f"On {counted(found.n, 'arm')} with scattered {keys}, {best} ranks first on {share}."
    else:
        yield f"Judged on {counted(found.n, 'arm')} with scattered {keys}."
    if found.not_evaluated:
        first = next(k for k in sorted(found.sweep.failed) if found.sweep.refused[k])
        more = (
            "1 more sample is"
            if found.not_evaluated == 1
            else (f"{found.not_evaluated} more samples are")
        )
        yield (
            f"{more} not evaluated and left out of all shares: "
            f"{found.sweep.failed[first].rstrip('.')}."
        )
    for name in found.wins:
        bad = [
            f"{what} on {_share(found, one)}"
            for what, one in (
                ("unstable", found.unstable[name]),
                ("no verdict", found.failed[name]),
            )
            if one.count
        ]
        settled = found.settled.get(name)
        if settled and settled.count < settled.of:
            bad.append(f"settles on {_share(found, settled)}")
        if bad:
            yield f"{name}: {', '.join(bad)}."
        worst = found.worst[name]
        if worst.why:
            yield f"{name} on sample {worst.sample}: {worst.why.rstrip('.')}."
    yield from shape_sentences(found.sweep)
    if found.sweep.interrupted:
        arms, s = counted(found.n, "arm"), "s" * (found.n == 1)
        yield f"Interrupted: only the {arms} on which all designs were judged count{s}."


def scatter_rows(found: Scatter) -> list[tuple[str, ...]]:
    """Rows of a table: a label, and for each design its share or its quantiles."""
    rows = [("ranks first (alone or tied)", found.wins), ("settles", found.settled)]
    rows += [("unstable", found.unstable), ("no verdict", found.failed)]
    table = [
        (label, *(_percent(own.get(name)) for name in found.wins))
        for label, own in rows
        if any(one.count for one in own.values())
    ]
    for key, factor, handy in _QUANTITIES:
        quantiles = [factor * found.quantiles[name][key] for name in found.wins]
        unit = found.sweep.metric_units[key] if handy is None else handy
        label = f"{key} [{unit}]" if unit else key
        table.append((label, *map(_quantiles, quantiles)))
    return table


def _percent(one: Share | None) -> str:
    return f"{100 * one.value:.3g} %" if one else "-"


def _quantiles(values: Array) -> str:
    """Write a median and, in brackets, the other quantiles."""
    if np.isinf(values).all():
        return "infinite"
    if np.isnan(values).all():
        return "-"
    low, median, high = map(_number, values)
    return f"{median} ({low} .. {high})"


def _number(value: float) -> str:
    return "none" if np.isnan(value) else "infinite" if np.isinf(value) else f"{value:.3g}"


def _share(found: Scatter, one: Share) -> str:
    return share_words(one, independent=found.sweep.independent, what="")
