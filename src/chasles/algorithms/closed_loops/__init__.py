"""Dynamics of mechanisms with closed loops (Featherstone 2008, chapter 8)."""
