"""Certificates: stability of uncertain linear loops, proven in interval arithmetic.

Its names are listed in `flexctl.robustness`.
"""
