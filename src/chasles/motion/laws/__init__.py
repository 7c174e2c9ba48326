"""Laws of contact: friction, restitution, soft ground."""
