"""Numeric tools: subspaces, sparse factors, maximal coordinates."""
