"""Contact of a robot: shapes and contact laws combined in the equation of motion."""
