"""Figures, each drawn by a function into a canvas (a figure or a part of one)."""
