"""What every test needs: figures without a screen, small matrices without threads."""

import os

os.environ.setdefault("MPLBACKEND", "Agg")
os.environ.pop("COLUMNS", None)  # tables as wide as a pipe has them
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy is imported
os.environ.setdefault("OMP_NUM_THREADS", "1")
