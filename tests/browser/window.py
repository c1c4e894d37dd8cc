"""A browser's window on a node, and what it complained of."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal

import pytest
from playwright.sync_api import Browser, Page, Playwright, sync_playwright

NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
"""The first of them that is there. The headless shell draws pages as the browser does, without its windows."""
# Without these it looks for updates and hosts of its maker at every start.
QUIET = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--disable-dev-shm-usage"),
)
Scheme = Literal["light", "dark"]


@contextmanager
def chromium() -> Iterator[Browser]:
    """The browser that is installed; skips where there is none."""
    executable = next((path for name in NAMES if (path := shutil.which(name))), None)
    if executable is None:
        pytest.skip("no browser: install Debian's chromium-headless-shell and fonts-noto-cjk to run this")
    with sync_playwright() as driver:
        browser = launched(driver, executable)
        yield browser
        browser.close()


def launched(driver: Playwright, executable: str) -> Browser:
    """The browser, without a screen."""
    return driver.chromium.launch(executable_path=executable, args=[*QUIET])


class Window:
    """One person's browser, with the cookies of `signed_in`. `complaints` are errors and what the policy forbade."""

    def __init__(
        self,
        browser: Browser,
        url: str,
        *,
        language: str = "en-US",
        scheme: Scheme = "light",
        width: int = 1100,
        height: int = 760,
        scripts: bool = True,
        signed_in: Any = None,
    ) -> None:
        self.url = url
        self.context = browser.new_context(
            viewport={"width": width, "height": height},
            locale=language,
            color_scheme=scheme,
            java_script_enabled=scripts,
            base_url=url,
            storage_state=signed_in,
        )
        self.page: Page = self.context.new_page()
        self.complaints: list[str] = []
        self.requested: list[str] = []
        self.page.on("console", self._said)
        self.page.on("pageerror", lambda error: self.complaints.append(f"script: {error}"))
        self.page.on("request", lambda request: self.requested.append(request.url))
        self.page.on("dialog", self._alarmed)

    def open(self, path: str) -> Page:
        """Open a page of the node."""
        self.page.goto(path, wait_until="load")
        return self.page

    def sign_in(self, token: str = "", **who: str) -> Page:
        """Sign in as a person would: the operator's button, or the fields."""
        page = self.open("/ui/sign-in")
        if not who and not token:
            page.click("button[name=as]")
        else:
            if token:
                page.fill("input[name=token]", token)
            for kind, name in who.items():
                page.fill(f"input[name={kind}]", name)
            page.click("form.fields button:not([name])")
        page.wait_for_url("**/ui")
        return page

    def close(self) -> None:
        """Close it, with its cookies."""
        self.context.close()

    def _said(self, message: Any) -> None:
        # An answer of 4xx is said as an error too, and is one that a page may give.
        if message.type in ("error", "warning") and "Failed to load resource" not in message.text:
            self.complaints.append(f"{message.type}: {message.text}")

    def _alarmed(self, dialog: Any) -> None:
        self.complaints.append(f"a script opened a dialog: {dialog.message}")
        dialog.dismiss()
