"""Operation counts that books print, and the same counts made by a trace."""
