"""Random arms with random designs: some at once, forty with all tests, more by `make battery`."""

import pytest

from tests.battery.checks import Subject, check_case, check_links, check_payload
from tests.battery.random_case import random_case

# That together have all of FEATURES and take a few seconds each
QUICK = (9, 14, 18, 22, 23, 40, 42, 46, 89, 150, 164)
FEATURES = {
    "one joint": lambda arm, _: len(arm["link"]) == 1,
    "two joints": lambda arm, _: len(arm["link"]) == 2,
    "three joints": lambda arm, _: len(arm["link"]) == 3,
    "gravity": lambda arm, _: any(arm["gravity"]),
    "none": lambda arm, _: not any(arm["gravity"]),
    "undamped": lambda arm, _: not any(link.get("damping_ratio") for link in arm["link"]),
    "flexible joint": lambda arm, _: any("flexible_joint" in link for link in arm["link"]),
    "prismatic": lambda arm, _: arm["link"][-1]["joint"] == "prismatic",
    "torque limit": lambda arm, _: "torque" in arm["link"][0].get("limits", {}),
    "sampled": lambda _, design: design["loop"].get("sample_time"),
    "late": lambda _, design: design["loop"].get("delay"),
    "observer": lambda _, design: "measures" in design["loop"],
    "integral action": lambda _, design: "Gi" in design.get("gains", {}),
    "second loop": lambda _, design: "second_loop" in design,
    **{
        method: lambda _, design, own=method: design["method"] == own
        for method in ("decoupling", "composite", "joint-pd", "lqg")
    },
}


@pytest.fixture(autouse=True)
def _no_compiler(monkeypatch):
    monkeypatch.setenv("FLEXCTL_CC", "none")  # what is run for a second is not worth compiling


@pytest.mark.slow_but("46")
@pytest.mark.parametrize("seed", QUICK)
def test_a_random_arm_holds_what_is_said_of_it(seed, tmp_path):
    assert not check_case(random_case(seed), tmp_path, quick=True).findings


def test_independent_errors_of_a_random_arm_are_bounded_as_said(tmp_path):
    subject = Subject(random_case(9).write(tmp_path), quick=True)
    check_links(subject)
    check_payload(subject)

    assert not subject.report.findings
    assert subject.report.counts["bounds of links"] == 1


@pytest.mark.slow  # ten seconds: a mode that no joint feels at one payload stands on the axis there
def test_a_mode_that_touches_the_axis_is_a_worst_case(tmp_path):
    subject = Subject(random_case(117).write(tmp_path))
    check_payload(subject)

    assert not subject.report.findings
    assert subject.report.counts["worst cases of payload that touch the axis only"] == 1


@pytest.mark.parametrize("feature", FEATURES)
def test_the_quick_ones_have_a_feature(feature):
    cases = [random_case(seed) for seed in QUICK]

    assert any(FEATURES[feature](case.arm, case.design) for case in cases)


@pytest.mark.slow  # 40 arms, half a minute each: every check, bounds of independent errors too
@pytest.mark.parametrize("seed", range(40))
def test_a_random_arm_holds_all_that_is_said_of_it(seed, tmp_path):
    assert not check_case(random_case(seed), tmp_path).findings


def test_a_seed_gives_the_same_files(tmp_path):
    first, second = (random_case(7).write(tmp_path / name) for name in "ab")

    assert [path.read_text() for path in first] == [path.read_text() for path in second]
