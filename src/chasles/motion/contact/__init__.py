"""Contact of a robot: shapes and laws put together in its equation of motion."""
