"""Programs and data for the documentation: the website, the architecture page, published tables."""
