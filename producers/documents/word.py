"""Word (.docx): converted to HTML, whose reader does the rest. Pictures are left out, and nothing else is opened."""

from __future__ import annotations

import io
import zipfile

import mammoth

from producers.documents import html
from producers.documents.blocks import Read, Unreadable

MOST_UNPACKED = 64 * 1024 * 1024
"""Bytes of the parts of a file, unpacked; pictures do not count, as nothing reads them."""
_PICTURES = ("word/media/", "word/embeddings/")
_STYLES = "p[style-name='Title'] => h1:fresh\np[style-name='Subtitle'] => p:fresh"


def read(content: bytes) -> Read:
    """Headings are those of Word's styles. Raises Unreadable."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            unpacked = sum(each.file_size for each in archive.infolist() if not each.filename.startswith(_PICTURES))
            names = set(archive.namelist())
    except (zipfile.BadZipFile, ValueError, OSError, RuntimeError) as error:
        raise Unreadable("it is no Word file (.docx) that can be read: it may be cut or broken") from error
    if unpacked > MOST_UNPACKED:
        raise Unreadable(f"unpacked it has {unpacked:,} bytes, {MOST_UNPACKED:,} are read of one file")
    if not any(name.startswith("word/") for name in names):
        raise Unreadable("it is a zip file, and not one of Word (.docx)")
    try:
        made = mammoth.convert_to_html(
            io.BytesIO(content),
            style_map=_STYLES,
            convert_image=mammoth.images.img_element(lambda _image: {"src": ""}),
            external_file_access=False,
        )
    except (MemoryError, RecursionError):
        raise
    except Exception as error:  # what a broken file raises in XML, zip and their reader is of many kinds
        raise Unreadable(f"it is no Word file that can be read ({type(error).__name__}): it may be broken") from error
    return html.read_text(made.value)
