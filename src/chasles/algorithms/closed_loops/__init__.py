"""Dynamics of trees with closed loops (Featherstone 2008, chapter 8)."""
