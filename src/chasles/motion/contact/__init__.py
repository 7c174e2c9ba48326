"""Robot contact: shapes and contact laws combined in the equation of motion."""
