"""All that a person sees: command line, tables, figures, animation, report.

Nothing is imported here, so that ``flexctl --help`` answers at once.
"""
