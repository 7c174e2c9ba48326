"""Contact geometry: shapes, their nearest features, and the motion of these features."""
