"""Records in sentences: what a result means, with its reasons and its caveats."""

from __future__ import annotations

from functools import singledispatch

from flexctl.loci import EigenvalueLoci
from flexctl.robustness import StiffnessMargin, TimeScaleMargin
from flexctl.verdict import Comparison, Evaluation
from flexctl.view.words.loci import loci_words
from flexctl.view.words.stiffness_margin import margin_words
from flexctl.view.words.time_scale_margin import time_scale_words
from flexctl.view.words.verdict import evaluation_words, verdict


@singledispatch
def explain(record: object) -> str:
    """Say what a result means: the verdict, the reasons for it, and its caveats.

    Parameters
    ----------
    record
        An `Evaluation`, a `Comparison`, a stiffness margin, a time-scale margin or eigenvalue loci.

    Raises
    ------
    TypeError
        When the record is of another kind.

    Examples
    --------
    >>> import flexctl
    >>> controller = flexctl.design_controller("single-link-hub", "hub-pd")
    >>> loop = flexctl.close_loop(controller, "single-link-hub", modes=2)
    >>> flexctl.explain(flexctl.evaluate(loop))
    'hub-pd: After the motion its tip error is at most 241 mm and settles within 1.18 s.'
    """
    raise TypeError(f"explain: expected a result of flexctl, got {type(record).__name__}")


explain.register(Comparison, verdict)
explain.register(Evaluation, evaluation_words)
explain.register(TimeScaleMargin, time_scale_words)
explain.register(EigenvalueLoci, loci_words)
explain.register(StiffnessMargin, margin_words)
