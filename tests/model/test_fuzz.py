import tomllib
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from flexctl.errors import InputError
from flexctl.model.arm import Arm
from flexctl.model.compatibility import check_design
from flexctl.model.design import Design
from flexctl.model.lookup import load_design, load_model
from flexctl.model.refusals import build_file
from flexctl.model.settings import apply_settings

QUICK = settings(
    max_examples=150,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.just(10**400),
    st.floats(),
    st.text(max_size=8),
    st.dates(),
    st.sampled_from(["end", "csv", "modes", "prismatic", "link1"]),
    st.sampled_from(["setpoint", "spin-up", "bang-bang", "feedforward", "torque"]),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["a", "y", "mass", "blend", "joint9", "\n\x85"]), inner, max_size=3
        )
    ),
    max_leaves=6,
)


def places(table, above=()):
    """Yield the key path of every value in a table."""
    items = table.items() if isinstance(table, dict) else enumerate(table)
    for key, value in items:
        yield (*above, key)
        if isinstance(value, dict | list):
            yield from places(value, (*above, key))


def mutated(table, path, action, value, key):
    *above, last = path
    place = table
    for step in above:
        place = place[step]
    if action == "delete":
        del place[last]
    elif action == "add" and isinstance(place, dict):
        place[key] = value
    elif action == "add":
        place.append(value)
    else:
        place[last] = value


def mutate(data, text, count):
    table = tomllib.loads(text)
    for _ in range(count):
        known = list(places(table))
        if not known:
            break
        path = data.draw(st.sampled_from(known))
        action = data.draw(st.sampled_from(["replace", "replace", "delete", "add"]))
        key = data.draw(st.sampled_from(["file", "damping", "name", "path", "k\ney", "", "é"]))
        mutated(table, path, action, data.draw(VALUES), key)
    return table


def outcome(make):
    """Return what is made, or the InputError; any other exception is a fault of ours."""
    try:
        return make()
    except InputError as error:
        return error


def one_line(error):
    return len(str(error).splitlines()) == 1


@pytest.mark.slow
@pytest.mark.parametrize(("record", "kind"), [(Arm, "model"), (Design, "design")])
@QUICK
@given(data=st.data(), count=st.integers(1, 3))
def test_a_mutated_table_is_made_or_refused(record, kind, model_text, design_text, data, count):
    text = {"model": model_text, "design": design_text}[kind]
    table = mutate(data, text, count)
    made = outcome(lambda: build_file(record, table, "case", None))
    if isinstance(made, InputError):
        assert one_line(made)
    else:
        assert build_file(record, made.table(), "case", None) == made


@pytest.mark.parametrize(("load", "kind"), [(load_model, "model"), (load_design, "design")])
@QUICK
@given(data=st.data())
def test_a_mutated_text_loads_or_is_refused(load, kind, model_text, design_text, tmp_path, data):
    text = {"model": model_text, "design": design_text}[kind].encode()
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, min(start + 12, len(text))))
    path = tmp_path / "case.toml"
    path.write_bytes(text[:start] + data.draw(st.binary(max_size=6)) + text[end:])
    made = outcome(lambda: load(path))
    assert one_line(made) if isinstance(made, InputError) else made.name == "case"


@pytest.mark.slow
@QUICK
@given(data=st.data())
def test_a_mutated_design_fits_or_is_refused(design_text, data):
    table = mutate(data, design_text, 2)
    try:
        design = build_file(Design, table, "case", Path("case.toml"))
        check_design(load_model("theodore-ghosal-rrp"), design)
    except InputError:
        return
    if not design.open_loop:
        assert max(len(design.gains.Gp), len(design.gains.Gv)) in (1, 3)


KEYS = st.sampled_from(
    ["link2", "links", "link[1]", "EI", "y", "dh", "a", "length", "payload", "mass", "gravity", ""]
)
WORDS = st.sampled_from(
    ["*2", "+10%", "-200%", "\n3", "\u2028", "3", "[1, 2]", "{}", '"x"', "{ a = 1 }", "*", "%"]
)


@QUICK
@given(
    texts=st.lists(
        st.builds(lambda keys, word: f"{'.'.join(keys)}={word}", st.lists(KEYS, max_size=3), WORDS),
        max_size=3,
    )
)
def test_any_settings_are_applied_or_refused(texts):
    arm = load_model("theodore-ghosal-rrp")
    changed = outcome(lambda: apply_settings(arm, texts))
    assert one_line(changed) if isinstance(changed, InputError) else changed.name == arm.name
