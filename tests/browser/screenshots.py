"""`make screenshots`: each page of a furnished node as a picture, in both languages and both themes.

Pictures are PNG, written to docs/images/page as NAME-LANGUAGE-THEME.png.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import get_args

from tests.browser.addresses import PAGES
from tests.browser.furnished import furnished_node
from tests.browser.window import Scheme, Window, chromium

FOLDER = Path(__file__).parents[2] / "docs" / "images" / "page"
MOST_BYTES = 200 * 1024
SHOWN = (
    *("overview", "knowledge", "knowledge-table", "search", "new", "bulk", "item", "versions", "lineage", "access"),
    *("traces", "trace", "session", "conflicts", "proposals", "approvals", "why", "why-message", "audit", "sql"),
)
LANGUAGES = {"en": "en-US", "zh": "zh-CN"}


def main() -> int:
    """Write every picture anew. Returns 1 where one is too large."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    too_large = []
    with tempfile.TemporaryDirectory() as folder, furnished_node(Path(folder) / "data") as node, chromium() as browser:
        for language, locale in LANGUAGES.items():
            for theme in get_args(Scheme):
                window = Window(browser, node.url, language=locale, scheme=theme, width=1000, height=700)
                window.sign_in()
                for name in SHOWN:
                    file = FOLDER / f"{name}-{language}-{theme}.png"
                    window.open(PAGES[name]).screenshot(path=file, animations="disabled")
                    if file.stat().st_size > MOST_BYTES:
                        too_large.append(file.name)
                window.close()
    sys.stdout.write(f"written to {FOLDER}\n")
    if too_large:
        sys.stderr.write(f"larger than {MOST_BYTES} bytes: {', '.join(too_large)}\n")
    return 1 if too_large else 0


if __name__ == "__main__":
    sys.exit(main())
