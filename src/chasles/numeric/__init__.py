"""Numeric tools of the books, beside the functions of a robot: subspaces, maximal coordinates."""
