"""Configuration of the documentation: pages in Markdown, the reference from the docstrings."""

import flexctl

project = "flexctl"
author = "flexctl developers"
project_copyright = author
version = release = flexctl.__version__
extensions = ["sphinx.ext.autodoc", "sphinx.ext.autosummary", "numpydoc", "myst_parser"]
myst_heading_anchors = 3
autodoc_typehints = "none"  # docstrings say what an array is; a type says no more
numpydoc_class_members_toctree = False
numpydoc_show_class_members = True
numpydoc_show_inherited_class_members = False
html_theme = "alabaster"
html_theme_options = {"description": "Control design for robot arms with flexible links"}
