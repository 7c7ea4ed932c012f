"""What every test needs: figures are drawn without a screen."""

import os

os.environ.setdefault("MPLBACKEND", "Agg")
