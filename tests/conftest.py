"""For every test: hypothesis takes the same examples each time, but in the long runs (`make test-long`)."""

from hypothesis import settings

settings.register_profile("seeded", derandomize=True, deadline=None)
settings.register_profile("random", deadline=None, print_blob=True)
settings.load_profile("seeded")
