"""Arrays of other libraries, each taken by the module with the name of its package."""
