"""Numeric tools of the books: subspaces, sparse factors, maximal coordinates."""
