"""Whether loci that are followed agree with those that are proven: branches, events, limits."""

import numpy as np
import scipy.optimize

_GONE = 1e-8  # multiplier below which zeros that rounding has split are not told apart


def assert_same(followed, proven, sample_time=None):
    """Compare two `Loci` of one family on one grid; branches may be in another order.

    Of a sampled loop without what is gone within a sample: delays have multipliers 0, which meet.
    """
    first, second = (_values(loci, sample_time) for loci in (followed, proven))
    at = _partners(first, second)
    span = float(proven.s[-1] - proven.s[0])
    doubt = {k for event in proven.unsafe for k in event.branches}
    sure = [k for k in range(len(proven.branches)) if k not in doubt]
    size = np.abs(second).max(axis=1)
    off = np.abs(first[at] - second).max(axis=1) / np.where(size > 0, size, 1.0)
    worst = max(sure, key=lambda k: off[k], default=0)
    assert not sure or off[worst] < 1e-9, f"branch {worst} is off by {off[worst]:.3g} of itself"
    stretches = [(event.start, event.end) for event in proven.unsafe]
    edge = 1e-6 * span
    for event in followed.unsafe:  # nothing is in doubt that the proof joins
        assert any(a - edge <= event.start and event.end <= b + edge for a, b in stretches)
    joined = [*_joined(proven, 1e-4 * span), *_bordered(proven, 1e-12 * span)]
    _assert_alike(_events(followed, joined), _events(proven, joined), span)
    _assert_alike(_crossings(followed), _crossings(proven), span)
    _assert_alike(
        [("stable", x) for pair in followed.stable for x in pair],
        [("stable", x) for pair in proven.stable for x in pair],
        span,
    )


def _values(loci, sample_time):
    values = np.array([branch.values for branch in loci.branches])
    if sample_time is not None:
        values = np.where(values.real < np.log(_GONE) / sample_time, 0.0, values)
    return np.nan_to_num(values, posinf=0.0, neginf=0.0)


def _partners(first, second):
    """Index (n,) of the followed branch, of values `first`, that each proven one is."""
    size = np.abs(second).max(axis=1)[:, None]
    off = np.abs(second[:, None] - first).max(axis=2) / np.where(size > 0, size, 1.0)
    return scipy.optimize.linear_sum_assignment(off)[1]


def _events(loci, joined):
    return [
        (event.kind, event.start)
        for event in loci.events
        if event.kind != "unsafe" and not any(a <= event.start <= b for a, b in joined)
    ]


def _joined(proven, most):
    """Stretches (a, b) from one doubt about two branches to the next: they meet in between."""
    doubts = {}
    for event in proven.unsafe:
        doubts.setdefault(event.branches, []).extend((event.start, event.end))
    return [(min(ends), max(ends)) for ends in doubts.values() if max(ends) - min(ends) < most]


def _bordered(proven, edge):
    """Doubts with an `edge`: whether an event next to one is an event is in doubt with it."""
    return [(event.start - edge, event.end + edge) for event in proven.unsafe]


def _crossings(loci):
    return [(f"{one.unstable} {one.whole}", one.s) for one in loci.crossings]


def _assert_alike(first, second, span):
    assert sorted(kind for kind, _ in first) == sorted(kind for kind, _ in second)
    places = zip(sorted(first), sorted(second), strict=True)
    assert all(abs(a - b) < 1e-6 * span for (_, a), (_, b) in places)
