"""Which gain set to take: three designs of the RRP arm and joint PD, judged on finer truths."""

import flexctl


def main() -> float:
    """Print the verdict; return the settling time of the best design [s]."""
    arm = flexctl.load_model("theodore-ghosal-rrp")
    designs = [flexctl.load_design(name) for name in ("rrp-composite", "rrp-gentle", "rrp-stiff")]
    comparison = flexctl.compare(arm, designs)
    print(flexctl.explain(comparison))
    best = next(e for e in comparison.evaluations if e.name == comparison.ranking[0])
    assert best.residual is not None
    assert best.residual.settling_time is not None
    return best.residual.settling_time


if __name__ == "__main__":
    print(f"settles in {main():.3f} s")
