"""Changes of a model before an algorithm is traced."""
