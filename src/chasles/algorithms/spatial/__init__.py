"""Spatial vectors (Featherstone 2008): one module for each chapter or kind of problem."""
