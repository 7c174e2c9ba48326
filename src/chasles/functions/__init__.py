"""Functions of a model: method selection, tracing, differentiation, compilation and calls."""
