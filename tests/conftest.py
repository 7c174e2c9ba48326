"""Settings that all tests share; its folder is on the import path, so tests can `import support`."""

from hypothesis import settings

settings.register_profile("chasles", deadline=None, derandomize=True, max_examples=25)
settings.load_profile("chasles")
