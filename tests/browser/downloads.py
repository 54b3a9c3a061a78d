"""A file that a click saves, read back by the browser tests."""

import sys
from pathlib import Path

from playwright.sync_api import Locator, Page
from playwright.sync_api import TimeoutError as PlaywrightTimeoutError

LOST_AFTER_MS = 15_000


def saved_file(page: Page, control: Locator, name: str) -> Path:
    """Click and give the file that is saved, which must have this name.

    A busy headless Chromium now and then drops a download that a script began, though the page has
    the content (seen once in some hundred runs). It is clicked once more then, which is printed; a
    page that does not save fails twice.
    """
    try:
        path, found = _click(page, control)
    except PlaywrightTimeoutError:
        print(f"Chromium dropped the download of {name}; clicked once more", file=sys.stderr)
        path, found = _click(page, control)
    assert found == name
    return path


def _click(page: Page, control: Locator) -> tuple[Path, str]:
    with page.expect_download(timeout=LOST_AFTER_MS) as download:
        control.click()
    return Path(download.value.path()), download.value.suggested_filename
