import pytest

MODEL = """\
summary = "An arm of three links"
source = "flexctl"
gravity = [0.0, 0.0, -9.81]
base = { position = [0.0, 0.0, 0.0], rotation_vector = [0.0, 0.0, 0.0] }

[[link]]
joint = "revolute"
dh = { a = 0.0, alpha = 1.5, d = 0.1, theta = 0.0 }
length = 0.1
mass_per_length = 37.0
joint_inertia = 0.35

[[link]]
name = "upper"
joint = "revolute"
dh = { a = 1.0, alpha = 1.5 }
length = 1.0
mass_per_length = 0.33
EI = { y = 1165.0, z = 1100.0 }
damping_ratio = [0.01, 0.02]
foreshortening = true
hub = { mass = 0.5, com = [0, 0, 0], inertia = [0.1, 0.1, 0.1] }
tip_load = { reference_pose = { joint3 = 0.5 }, include = ["M", "J"] }
limits = { position = [-3.1, 3.2], rate = 10.0, torque = 50.0 }

[[link]]
joint = "prismatic"
dh = { d = 0.0 }
total_length = 1.3
mass_per_length = 0.33
EI = { x = 1165.0 }
limits = { position = [0.1, 1.3] }

[payload]
mass = 0.1
com = [0, 0, 0]
inertia = [0, 0, 0]

[truth]
kind = "elements"
order = 4
drop_above = 1e5

[expect."link_frequencies.upper.y"]
value = [200.0, 1300.0]
rtol = 1e-4
from = "nowhere"
"""

DESIGN = """\
summary = "A design"
source = "flexctl"
model = "theodore-ghosal-rrp"
method = "decoupling"

[basis]
kind = "modes"
order = 2

[reference]
kind = "cycloid"
from = [0.0, 0.0, 0.3]
to = [3.1, 1.5, 1.0]
duration = 0.5

[gains]
Gp = 100.0
Gv = [20.0, 20.0, 20.0]
Gi = 0.0

[second_loop]
weights = { joint_error = 300.0, joint_rate = 0.3, strain_energy = 1.0, effort = 1e-4 }
switch = { blend = 0.05 }
solver = "slycot"

[loop]
measures = "state"
sample_time = 0.001
delay = 0.001
duration = 1.0
settle_within = 1e-4
strain_gauges = [0.1, 0.5]
"""


@pytest.fixture(scope="session")
def model_text():
    return MODEL


@pytest.fixture(scope="session")
def design_text():
    return DESIGN


@pytest.fixture
def write(tmp_path):
    """Return a function that writes a file and returns its path."""

    def write(text, name="case.toml"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write
