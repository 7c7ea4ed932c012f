"""No arm of the catalogue has odd numbers, and thresholds are where they say."""

import pytest

from flexctl.model.arm import Arm
from flexctl.model.lookup import list_designs, list_models, load_design, load_model
from flexctl.model.plausibility import odd_delays, odd_motion, odd_numbers
from tests.designs import make_design


@pytest.mark.parametrize("name", [entry.name for entry in list_models()])
def test_no_arm_of_the_catalogue_is_odd(name):
    assert odd_numbers(load_model(name)) == []


@pytest.mark.parametrize("name", [entry.name for entry in list_designs()])
def test_no_motion_of_the_catalogue_is_odd(name):
    design = load_design(name)

    assert odd_motion(design, load_model(design.model)) == []


def arm_with(gravity=(0.0, 0.0, 0.0), **link):
    own = {"joint": "revolute", "length": 0.8, "mass_per_length": 0.5, "EI": {"y": 30.0}}
    table = {"name": "arm", "summary": "one link", "source": "own", "gravity": list(gravity)}
    return Arm.model_validate(table | {"link": [own | link]})


# w_1 l = 3.516 sqrt(EI / mu) / l = 5000 m/s: EI = (5000 * 0.8 / 3.516)^2 * 0.5 = 6.4712e5 N m^2
MOTOR = {"torque_constant": 0.06, "resistance": 0.3, "command": "voltage"}
SPRING = {"rotor_inertia": 1e-4, "stiffness": 1e3}
EDGES = {
    "back-EMF": (
        {"motor": MOTOR | {"back_emf": 0.1199}},
        {"motor": MOTOR | {"back_emf": 0.1201}},
    ),
    "back-EMF below": (
        {"motor": MOTOR | {"back_emf": 0.0301}},
        {"motor": MOTOR | {"back_emf": 0.0299}},
    ),
    "no back-EMF": ({"motor": MOTOR | {"back_emf": 0.0}}, {"motor": MOTOR | {"back_emf": 6e-5}}),
    "gear": (
        {"motor": MOTOR | {"back_emf": 0.06, "gear": 1.0}},
        {"motor": MOTOR | {"back_emf": 0.06, "gear": 0.99}},
    ),
    "gear of a spring": (
        {"flexible_joint": SPRING | {"gear": 1.0}},
        {"flexible_joint": SPRING | {"gear": 0.01}},
    ),
    "EI": ({"EI": {"y": 6.46e5}}, {"EI": {"y": 6.48e5}}),
    "alpha": ({"dh": {"alpha": 6.28}}, {"dh": {"alpha": 6.29}}),
    "damping": ({"damping_ratio": [0.2]}, {"damping_ratio": [0.01, 0.21]}),
    "gravity": ({"gravity": (60.0, 0.0, 80.0)}, {"gravity": (60.0, 0.0, 80.1)}),
    "length": ({"length": 100.0, "EI": {"y": 1e6}}, {"length": 101.0, "EI": {"y": 1e6}}),
    "dh": ({"EI": {}, "dh": {"a": 0.8}}, {"EI": {}, "dh": {"alpha": 0.5}}),
    "limits": (
        {"limits": {"position": [-20.0, 20.0]}},
        {"limits": {"position": [-20.1, 20.0]}},
    ),
}


@pytest.mark.parametrize("edge", EDGES)
def test_what_lies_just_inside_is_plausible_and_just_outside_is_told(edge):
    inside, outside = (odd_numbers(arm_with(**change)) for change in EDGES[edge])

    assert inside == []
    assert len(outside) == 1


@pytest.mark.parametrize(("largest", "odd"), [(6.28, False), (-6.29, True)])
def test_a_file_in_degrees_is_told(tmp_path, largest, odd):
    (tmp_path / "motion.csv").write_text(f"t,joint1\n0,0\n1,{largest}\n2,1\n")
    path = tmp_path / "law.toml"
    path.write_text(
        'summary = "x"\nsource = "own"\nmodel = "arm"\nmethod = "joint-pd"\n'
        "gains = { Gp = 1.0, Gv = 1.0 }\n"
        'reference = { kind = "csv", file = "motion.csv" }\n'
    )
    told = odd_motion(load_design(str(path)), arm_with())
    assert [("reference.file: -6.29 rad" in line) for line in told] == [True] * odd


@pytest.mark.parametrize(
    ("tables", "keys"),
    [
        ({"loop": {"sample_time": 1e-3, "delay": 0.02}}, []),
        ({"loop": {"sample_time": 1e-3, "delay": 0.021}}, ["loop.delay"]),
        ({"loop": {"delay": 0.0}}, []),
        (
            {
                "loop": {"sample_time": 1e-3},
                "instruments": [{"kind": "encoder"}, {"kind": "tachometer", "delay": 0.05}],
            },
            ["instruments[2].delay"],
        ),
    ],
)
def test_delays_of_many_samples_are_told(tables, keys):
    told = odd_delays(make_design([0.0], [1.0], "joint-pd", **tables))
    assert [line.split(": ")[1] for line in told] == keys
    assert all("samples of the law" in line for line in told)


@pytest.mark.parametrize("name", [entry.name for entry in list_designs()])
def test_no_delay_of_the_catalogue_is_odd(name):
    assert odd_delays(load_design(name)) == []
