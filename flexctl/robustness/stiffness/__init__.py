"""Stiffness margin: how wrong the stiffness of the controller's model may be.

Its names are listed in `flexctl.robustness`.
"""
