"""The documentation site: `python -m sphinx -W -n docs site`, offline.

Pages are plain Markdown, readable where the repository is shown. What the site adds to them is in
`building/`: the navigation, taken from the tables of index.md; docstrings as reStructuredText; a
notebook of each tutorial; equations as MathML; markup for screen readers; the list of links that
lead outside; links between versions.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

from chasles import __version__

project = "chasles"
author = "the authors of chasles"
version = release = __version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx_copybutton",
    "building.pages",
    "building.docstrings",
    "building.notebooks",
    "building.equations",
    "building.markup",
]
root_doc = "index"
nitpicky = True
smartquotes = False  # a prime is a transpose
exclude_patterns = ["building", "**/__pycache__"]

myst_heading_anchors = 4  # as the repository's web page makes them
myst_links_external_new_tab = False
myst_enable_extensions = ["fieldlist", "dollarmath", "amsmath"]
html_math_renderer = "mathml"

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = False
python_maximum_signature_line_length = 88
# Types in signatures that have no entry of their own: those of other packages, the compiler's own,
# and parts of a public type.
INNER = "backends|checks|expr|functions|mathematics|mechanisms|model|motion|peers|plots"
nitpick_ignore_regex = [
    ("py:class", r"(collections|matplotlib|numpy|os|pathlib)\..*"),
    ("py:class", rf"chasles\.({INNER})\..*"),
    ("py:class", r"chasles\.distances\.elements\..*"),
    ("py:class", r"chasles\.identification\.(equations|linear)\..*"),
    ("py:class", r"tuple\[.*"),  # of signatures with a default that Python cannot parse
    ("py:class", r"Tiered|Distances"),  # names that a decorated function's module does not import
    ("py:class", r"chasles\.conventions\.libraries\._Turn|chasles\.homogeneous\.matrices\.T"),
]

html_theme = "furo"
templates_path = ["building/templates"]
html_static_path = ["building/static"]
html_favicon = "building/static/icon.svg"
html_sidebars = {
    "**": [
        "sidebar/brand.html",
        "versions.html",
        "sidebar/search.html",
        "sidebar/scroll-start.html",
        "sidebar/navigation.html",
        "sidebar/scroll-end.html",
    ]
}
html_title = f"chasles {__version__}"
html_show_sphinx = False
html_copy_source = False
copybutton_prompt_text = "$ "
highlight_language = "text"
