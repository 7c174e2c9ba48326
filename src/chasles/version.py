"""The version of this package, for everything that writes it down; pyproject.toml reads it here."""

VERSION = "0.1.0"
