"""The structured singular value that `disk_margin` maximises over the frequency."""

from flexctl.verdict.disk_margin import best_scaling
from flexctl.verdict.largest_gain import scaled_gain


def structured_singular_value(Z):
    """Structured singular value of Z (m, m), one complex block per channel; for m > 3 its bound."""
    return scaled_gain(Z, best_scaling)
