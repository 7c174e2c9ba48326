"""Trees whose loops are closed (Featherstone 2008, chapter 8)."""
