"""Settings that all tests share. Its folder is on the import path: tests can import `support`."""

from hypothesis import settings

settings.register_profile("chasles", deadline=None, derandomize=True, max_examples=25)
settings.load_profile("chasles")
