"""Programs and data behind the documentation: the site, the architecture page, books' tables."""
