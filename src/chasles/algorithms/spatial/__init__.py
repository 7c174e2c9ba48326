"""Spatial vectors (Featherstone 2008), with one module per chapter or kind of problem."""
