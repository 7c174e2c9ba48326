"""Operation counts as books print them: data, to set beside what the programs here take."""
