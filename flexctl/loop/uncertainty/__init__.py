"""Loops whose parameters are uncertain: exact real crossings, and bounds of mu."""
