"""A linear model of a sagging arm for python-control: poles, holding torque, static sag."""

import numpy as np

import flexctl
from flexctl.model import BasisChoice, apply_settings
from flexctl.plant import linearise


def main() -> float:
    """Print the arm's linear model about rest; return the sag of its tip [m]."""
    arm = flexctl.load_model("single-link-hub")
    arm = apply_settings(arm, ["gravity=[0.0, -9.81, 0.0]"])
    plant = flexctl.assemble_plant(arm, BasisChoice(kind="modes", order=3))
    linear = linearise(plant, {"joint1": 0.0})
    system = linear.to_control()
    print("inputs", system.input_labels, "outputs", system.output_labels)
    print("poles [rad/s]", np.sort_complex(system.poles())[-6:])
    print(f"holding torque {linear.tau0[0]:.4f} N m")
    return -float(plant.tip(linear.q0)[1])


if __name__ == "__main__":
    print(f"the tip sags by {1e3 * main():.2f} mm")
