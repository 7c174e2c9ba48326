"""Package version, read from this file by the build."""

VERSION = "0.1.0"
