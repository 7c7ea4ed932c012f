"""Stiffness margin: how wrong the stiffness of the controller's model may be."""
