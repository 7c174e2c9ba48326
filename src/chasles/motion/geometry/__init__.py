"""Contact geometry: shapes, what of them is nearest, and how it moves."""
