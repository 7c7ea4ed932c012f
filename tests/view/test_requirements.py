"""Conditions on the result, apart from any command."""

import pytest

from flexctl.errors import InputError
from flexctl.view.requirements import look_up, read_requirements

ANSWER = {
    "residual": {"tip_error_max": 2e-3, "settling_time": None},
    "stability": {"stable": "marginal"},
    "failed": None,
    "margins": None,
    "peak": [3.0, 1.0],
}


def failure(text):
    (requirement,) = read_requirements([text])
    return requirement.failure(ANSWER)


@pytest.mark.parametrize(
    "text",
    [
        "residual.tip_error_max<=2e-3",
        "residual.tip_error_max > 1e-3",
        "peak.1==1",
        "failed==null",
        "stability.stable!=true",
        "stability.stable == marginal",
        "residual.settling_time==null",
        "margins.disk==null",
    ],
)
def test_what_holds(text):
    assert failure(text) is None


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("residual.tip_error_max<1e-3", "0.002"),
        ("residual.settling_time<0.2", "null"),
        ("margins.disk>0.3", "null"),  # a design that failed has none
        ("margins.gain_db.0>=6", "null"),
        ("stability.stable==true", "marginal"),
        ("peak.0<3", "3"),
    ],
)
def test_what_does_not_hold_says_what_it_found(text, found):
    assert failure(text) == f"required {text} does not hold: it is {found}"


@pytest.mark.parametrize(
    ("key", "nearest"),
    [("residual.tip_eror_max", "tip_error_max"), ("peek", "peak"), ("peak.2", "0, 1")],
)
def test_an_unknown_key_names_the_nearest(key, nearest):
    with pytest.raises(InputError, match=nearest):
        look_up(ANSWER, key)


@pytest.mark.parametrize("sign", ["<<", "=", "=<", "<>", "!", "==="])
def test_an_operator_that_is_none_is_named(sign):
    said = f"expected one of the operators < <= > >= == !=, got {sign}, which is none of them"
    with pytest.raises(InputError, match=said):
        read_requirements([f"peak.0{sign}1"])


@pytest.mark.parametrize("text", ["", "peak", "<1", "peak.0<", "peak.0=1", "peak.0<inf"])
def test_what_cannot_be_read_is_refused(text):
    with pytest.raises(InputError, match="--require"):
        read_requirements([text])
