"""Conditions on the result, apart from any command."""

import pytest

from flexctl.errors import InputError
from flexctl.search import worst
from flexctl.verdict import UNITS
from flexctl.view.json.known_keys import known_of_comparison, known_of_evaluation
from flexctl.view.requirements import check_keys, look_up, read_requirements

ANSWER = {
    "residual": {"tip_error_max": 2e-3, "settling_time": None},
    "stability": {"stable": "marginal"},
    "failed": None,
    "margins": None,
    "peak": [3.0, 1.0],
    "values": {"gains.Gp": [140.0]},
    "quantiles": {"margins.disk": {"0.05": 0.4}},
    "ranking": [],
    "cost": {},
    "reasons": [{"code": "thin-margin"}],
    "not_computed": {"stiffness": "late"},
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
        "values.gains.Gp.0>100",  # names that hold dots
        "quantiles.margins.disk.0.05>0.3",
        "cost.law_mul==null",
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
        ("quantiles.margins.disk.0.05>0.5", "0.4"),
        ("ranking.0==my-design", "null"),  # where nothing ranks
        ("cost.law_mul<100", "null"),  # of a design without a controller
        ("reasons.1.code==thin-margin", "null"),
        ("not_computed.margins==late", "null"),
    ],
)
def test_what_does_not_hold_says_what_it_found(text, found):
    assert failure(text) == f"required {text} does not hold: it is {found}"


@pytest.mark.parametrize(
    ("key", "nearest"),
    [
        ("residual.tip_eror_max", "tip_error_max"),
        ("peek", "peak"),
        ("peak.x", "0, 1"),
        ("peak.2", "one of: 0, 1"),
        ("values.gains.Gq.0", "nearest: gains.Gp"),
        ("quantiles.margins.disk.0.5", "nearest: 0.05"),
    ],
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


SEVERAL = {"margins": {"gain_db": [8.0, None, 3.2], "phase_deg": [50.0, 40.0], "peaks": [1.0, 2.0]}}
SEVERAL |= {"effort": {"peak": [2.0, 5.0]}, "noise": {"torque_rms": [1.0, None]}}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("margins.gain_db>=3", None),  # null: nothing limits that channel
        ("margins.gain_db>=6", "3.2 at the worst of 3"),
        ("margins.gain_db.1>=6", "null"),  # one channel alone is as ever
        ("margins.phase_deg>45", "40 at the worst of 2"),
        ("effort.peak<=5", None),
        ("effort.peak<4", "5 at the worst of 2"),
        ("noise.torque_rms<4", "null at the worst of 2"),
    ],
)
def test_of_a_metric_of_several_channels_the_worst_counts(text, found):
    (requirement,) = read_requirements([text])
    expected = found and f"required {text} does not hold: it is {found}"
    assert requirement.failure(SEVERAL) == expected


def test_the_worst_channel_is_that_of_limits_in_tuning():
    for key, values in (("margins.gain_db", [8.0, 3.2]), ("effort.peak", [2.0, 5.0])):
        limit = worst(key, {key: values})
        for text, holds in ((f"{key}>={limit!r}", True), (f"{key}>{limit!r}", False)):
            (requirement,) = read_requirements([text])
            part, name = key.split(".")
            assert (requirement.failure({part: {name: values}}) is None) is holds


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("margins.gain_db==6", r"holds margins\.gain_db\.0, margins\.gain_db\.1, "),
        ("margins.peaks<3", r"holds margins\.peaks\.0, margins\.peaks\.1"),
        ("margins>3", r"holds margins\.gain_db, margins\.phase_deg"),
    ],
)
def test_several_values_without_a_worst_one_name_the_keys_of_each(text, expected):
    (requirement,) = read_requirements([text])
    with pytest.raises(InputError, match=expected):
        requirement.failure(SEVERAL)


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("margins.gain_db", r"nearest: evaluations\.0\.margins\.gain_db"),
        ("evaluations.2.margins.disk", "one of: 0, 1"),
        ("evaluations.0.margins.disc", "nearest: disk"),
        ("evaluations.0.margins.disk.1", "nothing below a single value"),
        ("evaluations.0.margins.gain_db.x", r"one of: 0, 1, \.\.\."),
        ("evaluations.0.margins", r"holds evaluations\.0\.margins\.gain_db"),
        ("evaluations.0.rest.joint", r"holds evaluations\.0\.rest\.joint\.0, .*1, \.\.\."),
        ("rankin", "nearest: ranking"),
    ],
)
def test_keys_that_no_comparison_has_are_refused_before_the_work(key, expected):
    with pytest.raises(InputError, match=expected):
        check_keys([f"{key}>1"], known_of_comparison(2))


def test_metrics_are_known_keys_of_an_evaluation():
    for key in UNITS:
        check_keys([f"{key}>1"], known_of_evaluation())
