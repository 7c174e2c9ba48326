"""Numerical methods: subspaces, sparse factorization and maximal coordinates."""
