"""What the tests of papers share: a cache of their own."""

import pytest


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory):
    """Compile into a folder of this session: no library of the user is met or left behind."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FLEXCTL_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield
