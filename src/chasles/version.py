"""Version of this package, also read by pyproject.toml."""

VERSION = "0.1.0"
