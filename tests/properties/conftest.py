"""The same examples in every run, and no clock on each: a busy machine is no defect of a reader."""

from hypothesis import settings

settings.register_profile("properties", derandomize=True, deadline=None)
settings.load_profile("properties")
