"""Dynamics with spatial vectors (Featherstone 2008), one module per chapter or kind of problem."""
