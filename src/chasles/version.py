"""Package version, which pyproject.toml also reads."""

VERSION = "0.1.0"
