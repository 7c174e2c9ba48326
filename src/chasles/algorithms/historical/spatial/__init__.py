"""Spatial vectors (Featherstone 2008): methods used only by name."""
