"""Functions of a model: tracing, choice of method, differentiation, compilation and calls."""
