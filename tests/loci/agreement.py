"""Whether loci that are followed agree with those that are proven: branches, events, limits."""

import numpy as np
import scipy.optimize


def assert_same(followed, proven):
    """Compare two `Loci` of one family on one grid; branches may be in another order."""
    at = _partners(followed, proven)
    span = float(proven.s[-1] - proven.s[0])
    doubt = {k for event in proven.unsafe for k in event.branches}
    sure = [k for k in range(len(proven.branches)) if k not in doubt]
    first, second = (_values(loci) for loci in (followed, proven))
    size = np.abs(second).max(axis=1)
    off = np.abs(first[at] - second).max(axis=1) / np.where(size > 0, size, 1.0)
    worst = max(sure, key=lambda k: off[k], default=0)
    assert not sure or off[worst] < 1e-9, f"branch {worst} is off by {off[worst]:.3g} of itself"
    stretches = [(event.start, event.end) for event in proven.unsafe]
    edge = 1e-6 * span
    for event in followed.unsafe:  # nothing is in doubt that the proof joins
        assert any(a - edge <= event.start and event.end <= b + edge for a, b in stretches)
    _assert_alike(_events(followed), _events(proven), span)
    _assert_alike(_crossings(followed), _crossings(proven), span)
    _assert_alike(
        [("stable", x) for pair in followed.stable for x in pair],
        [("stable", x) for pair in proven.stable for x in pair],
        span,
    )


def _values(loci):
    return np.nan_to_num([branch.values for branch in loci.branches], posinf=0.0, neginf=0.0)


def _partners(followed, proven):
    """Index (n,) of the followed branch that each proven one is."""
    first, second = _values(followed), _values(proven)
    size = np.abs(second).max(axis=1)[:, None]
    off = np.abs(second[:, None] - first).max(axis=2) / np.where(size > 0, size, 1.0)
    return scipy.optimize.linear_sum_assignment(off)[1]


def _events(loci):
    return [(event.kind, event.start) for event in loci.events if event.kind != "unsafe"]


def _crossings(loci):
    return [(f"{one.unstable} {one.whole}", one.s) for one in loci.crossings]


def _assert_alike(first, second, span):
    assert sorted(kind for kind, _ in first) == sorted(kind for kind, _ in second)
    places = zip(sorted(first), sorted(second), strict=True)
    assert all(abs(a - b) < 1e-6 * span for (_, a), (_, b) in places)
