"""Sphinx' configuration; it is copied into the assembled sources (tests/docs/site.py), which set the two variables of the environment."""

import os

project = "kubenode.runtime_gate"
author = "The kubenode.runtime_gate contributors"
release = version = os.environ["RUNTIME_GATE_VERSION"]
copyright = author
extensions = ["myst_parser", "sphinx_antsibull_ext"]
exclude_patterns = []
myst_heading_anchors = 3
myst_enable_extensions = []
nitpicky = True
default_role = "any"
highlight_language = "YAML+Jinja"
# Values of other programs' files are shown as they are, whether a lexer knows them or not.
suppress_warnings = ["misc.highlighting_failure", "myst.header"]

html_theme = "furo"
html_title = f"kubenode.runtime_gate {version}"
html_static_path = ["_static"]
html_css_files = ["pages.css"]
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {"source_repository": os.environ["RUNTIME_GATE_REPOSITORY"] + "/", "top_of_page_buttons": []}
# Nothing is fetched: references to other projects' documentation are left as text.
intersphinx_mapping = {}
