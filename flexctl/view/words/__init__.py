"""Sentences of verdicts: what records of facts mean, in words."""
