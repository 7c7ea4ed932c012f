"""Run the command line as a person does: words in, status and both streams out."""

from typing import NamedTuple

import pytest

from flexctl.view.cli import run

QUICK = ("single-link-hub", "hub-pd", "-m", "1", "--truth-modes", "1")

# A rod of 0.3 * 1^2 / 3 + 0.2 * 1^2 = 0.3 kg m^2 on a spring, rotor 2^2 * 0.05 = 0.2 kg m^2.
ROD_ON_SPRING = """
summary = "A rigid rod on a spring"
source = "flexctl"
gravity = [0.0, 0.0, 0.0]
[[link]]
joint = "revolute"
dh = { a = 1.0 }
mass_per_length = 0.3
flexible_joint = { rotor_inertia = 0.05, gear = 2.0, stiffness = 60.0 }
[payload]
mass = 0.2
"""

# Two bending links; only the second joint has a spring.
ONE_SPRING = """
summary = "Two flexible links, the second behind a spring"
source = "flexctl"
gravity = [0.0, 0.0, 0.0]
[[link]]
joint = "revolute"
length = 0.5
mass_per_length = 0.2
EI = { y = 10.0 }
joint_inertia = 0.1
[[link]]
joint = "revolute"
length = 0.5
mass_per_length = 0.2
EI = { y = 10.0 }
flexible_joint = { rotor_inertia = 0.02, stiffness = 100.0, damping = 0.1 }
[payload]
mass = 0.1
"""

SLOW_PD = """
summary = "A quick motion under slow gains"
source = "flexctl"
model = "one-spring"
method = "joint-pd"
[basis]
kind = "modes"
order = 1
[reference]
kind = "quintic"
from = [0.0, 0.0]
to = [0.5, 0.3]
duration = 0.5
[gains]
Gp = [8.0, 3.0]
Gv = [3.0, 1.0]
[loop]
duration = 1.0
"""


class Said(NamedTuple):
    """What a command said and how it ended."""

    status: int
    out: str
    err: str


@pytest.fixture
def flexctl(capsys):
    def call(*words):
        status = run([str(word) for word in words])
        streams = capsys.readouterr()
        return Said(status=status, out=streams.out, err=streams.err)

    return call


@pytest.fixture(scope="session")
def sprung(tmp_path_factory):
    """Paths of arms with flexible joints, and of a design for one of them, by name."""
    folder = tmp_path_factory.mktemp("sprung")
    files = {"rod-on-spring": ROD_ON_SPRING, "one-spring": ONE_SPRING, "slow-pd": SLOW_PD}
    for name, text in files.items():
        (folder / f"{name}.toml").write_text(text)
    return {name: folder / f"{name}.toml" for name in files}
