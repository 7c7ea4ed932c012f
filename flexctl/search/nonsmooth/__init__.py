"""Nonsmooth minimisation: the largest of several functions, where others stay below zero."""

from flexctl.search.nonsmooth.combination import smallest_combination
from flexctl.search.nonsmooth.descent import minimise
from flexctl.search.nonsmooth.pieces import Functions, Minimum, Pieces, Progress

__all__ = ["Functions", "Minimum", "Pieces", "Progress", "minimise", "smallest_combination"]
