"""The layers of chasles, for the test of imports, the graph on the architecture page, and walks."""

LAYERS: tuple[tuple[str, ...], ...] = (
    ("version", "errors", "entry_points"),
    ("expr",),
    ("mathematics",),
    ("model",),
    ("algorithms", "backends", "formats"),
    ("tracing", "names", "cost", "numeric", "libraries"),
    ("programs",),
    ("compiled", "loops", "rollouts"),
    ("robot", "devices"),
    ("contact",),
    (
        *("robots", "api", "accuracy", "control", "conventions", "homogeneous", "simulate"),
        *("exporting", "checks"),
    ),
    ("lint", "peers", "plots"),
    ("",),  # the package itself: `import chasles`
    ("view",),
    ("cli",),
    ("__main__",),
)
"""Folders and files of src/chasles, from the ground up. Units on one line never import each other.
"""

RANK = {unit: rank for rank, units in enumerate(LAYERS) for unit in units}

LEAVES = ("checks", "lint", "peers", "plots", "view")
"""Units that nothing below the package itself knows, except by entry points."""
