"""What is computed with NumPy from arrays that compiled functions return."""
