"""Cartesian tensors (Balafoutis and Patel 1991): dynamics of manipulators, extended to trees."""
