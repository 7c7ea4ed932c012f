"""Plant, controller and reference together."""
