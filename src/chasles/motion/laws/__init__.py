"""Contact laws: friction, restitution, soft ground."""
