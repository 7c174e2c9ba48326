"""The version of this package, for everything that writes it down."""

VERSION = "0.1.0"
