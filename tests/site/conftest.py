"""The site that these tests share."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.site.building import built_site


@pytest.fixture(scope="package")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built_site(tmp_path_factory.mktemp("site") / "some" / "path")
