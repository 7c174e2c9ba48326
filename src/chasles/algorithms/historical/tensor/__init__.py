"""Cartesian tensors (Balafoutis and Patel 1991): methods used only by name."""
