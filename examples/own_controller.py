"""An H-infinity controller of python-control on a flexible arm, judged beside a joint PD.

Mixed sensitivity on the linearised arm: w1 asks for a bandwidth of some 4 rad/s, w2 bounds the
torque. The method allows no poles on the axis, where those of the free joint are: it designs for
s - 1, so that everything decays at 1/s at least. Its controller has a very fast pole, as optimal
ones have; sampled at 500 Hz that is a delay.
"""

import warnings
from typing import Any

import control
import numpy as np

import flexctl

DECAY = 1.0  # 1/s
SAMPLE_TIME = 0.002  # s


def design() -> Any:
    """Make the sampled controller from the error of the joint angle to its torque."""
    plant = flexctl.assemble_plant(flexctl.load_model("single-link-hub"), modes=2)
    G = flexctl.linearise(plant, {"joint1": 0.0}).to_control()["joint1", "tau_joint1"]
    moved = control.ss(G.A + DECAY * np.eye(G.nstates), G.B, G.C, 0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # mixsyn calls an old function of its own
        K, *_ = control.mixsyn(moved, control.tf([0.5, 4], [1, 0.04]), control.tf([0.02], [1]))
    K = control.ss(K.A - DECAY * np.eye(K.nstates), K.B, K.C, K.D)
    return control.c2d(K, SAMPLE_TIME, "zoh")


def main() -> float:
    """Print the verdict; return the time in which the tip settles within 1 cm [s]."""
    arm, pd = flexctl.load_model("single-link-hub"), flexctl.load_design("hub-pd")
    own = flexctl.wrap_controller(
        design(),
        arm,
        pd,
        measures=["joint1"],
        name="h-infinity",
        duration=4.0,
        settle_within=0.01,
    )
    found = flexctl.compare(arm, [own, pd], baseline=False)
    for one in found.evaluations:
        assert one.residual is not None
        assert one.margins is not None
        print(f"{one.name}: tip error after the motion {1e3 * one.residual.tip_error_max:.0f} mm,")
        print(f"  disk margin {one.margins.disk:.2f}")
    settling = found.evaluations[0].residual
    assert settling is not None
    assert settling.settling_time is not None
    return settling.settling_time


if __name__ == "__main__":
    print(f"settles within 1 cm in {main():.3f} s")
