"""Files of the formats that are read, made for the tests: the bytes of a PDF and of a Word file from their text."""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Iterable, Sequence
from html import escape

_CONTENT_TYPES = """<?xml version="1.0" encoding="UTF-8"?>
<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">
<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>
<Default Extension="xml" ContentType="application/xml"/>
<Override PartName="/word/document.xml"
 ContentType="application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"/>
<Override PartName="/word/styles.xml"
 ContentType="application/vnd.openxmlformats-officedocument.wordprocessingml.styles+xml"/>
</Types>"""
_RELATIONS = """<?xml version="1.0" encoding="UTF-8"?>
<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">
<Relationship Id="rId1" Target="{target}"
 Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/{kind}"/>
</Relationships>"""
_WORD = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
_STYLES = f"""<?xml version="1.0" encoding="UTF-8"?><w:styles {_WORD}>
<w:style w:type="paragraph" w:styleId="Heading1"><w:name w:val="heading 1"/></w:style>
<w:style w:type="paragraph" w:styleId="Heading2"><w:name w:val="heading 2"/></w:style>
</w:styles>"""

_ESCAPED = str.maketrans({"(": r"\(", ")": r"\)", "\\": r"\\"})
Said = Sequence[tuple[int, str]]
"""Paragraphs (0) and headings (1, 2)."""


def word(said: Said) -> bytes:
    """A Word file (.docx)."""
    paragraphs = "".join(
        "<w:p>"
        + (f'<w:pPr><w:pStyle w:val="Heading{level}"/></w:pPr>' if level else "")
        + f"<w:r><w:t>{escape(text)}</w:t></w:r></w:p>"
        for level, text in said
    )
    return word_of(document_part(paragraphs))


def document_part(body: str) -> str:
    """The document part of a Word file with this body."""
    return f'<?xml version="1.0" encoding="UTF-8"?><w:document {_WORD}><w:body>{body}</w:body></w:document>'


def word_of(document: str | Iterable[bytes]) -> bytes:
    """A Word file with this document part, in pieces where it is large; whenever it is made, the same bytes."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(zipfile.ZipInfo("[Content_Types].xml"), _CONTENT_TYPES)
        archive.writestr(
            zipfile.ZipInfo("_rels/.rels"), _RELATIONS.format(target="word/document.xml", kind="officeDocument")
        )
        archive.writestr(
            zipfile.ZipInfo("word/_rels/document.xml.rels"), _RELATIONS.format(target="styles.xml", kind="styles")
        )
        archive.writestr(zipfile.ZipInfo("word/styles.xml"), _STYLES)
        with archive.open("word/document.xml", "w") as part:
            for piece in [document.encode()] if isinstance(document, str) else document:
                part.write(piece)
    return file.getvalue()


def page_of(lines: Sequence[str]) -> bytes:
    """The drawing of a page with these lines, compressed."""
    shown = "".join(f"({line.translate(_ESCAPED)}) Tj T* " for line in lines)
    return zlib.compress(f"BT /F1 12 Tf 14 TL 72 760 Td {shown}ET".encode("latin-1"))


def pdf(pages: Sequence[Sequence[str]], outline: Sequence[tuple[str, int]] = (), title: str = "") -> bytes:
    """A PDF with these lines on its pages, and an outline of (bookmark, number of its page from 0)."""
    return pdf_of([page_of(lines) for lines in pages], outline, title)


def pdf_of(drawings: Sequence[bytes], outline: Sequence[tuple[str, int]] = (), title: str = "") -> bytes:
    """A PDF of these drawings, each compressed."""
    first_page, marks = 6, 6 + 2 * len(drawings)
    kids = " ".join(f"{first_page + 2 * number} 0 R" for number in range(len(drawings)))
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R /Outlines 4 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(drawings)} >>".encode(),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
        f"<< /Type /Outlines /First {marks} 0 R /Last {marks + len(outline) - 1} 0 R /Count {len(outline)} >>".encode()
        if outline
        else b"<< /Type /Outlines /Count 0 >>",
        f"<< /Title ({title}) >>".encode(),
    ]
    for number, drawing in enumerate(drawings):
        objects.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources << /Font << /F1 3 0 R >> >> "
            f"/Contents {first_page + 2 * number + 1} 0 R >>".encode()
        )
        head = f"<< /Length {len(drawing)} /Filter /FlateDecode >>\nstream\n".encode()
        objects.append(head + drawing + b"\nendstream")
    for number, (name, page) in enumerate(outline):
        beside = f"/Next {marks + number + 1} 0 R " if number + 1 < len(outline) else ""
        objects.append(f"<< /Title ({name}) /Parent 4 0 R {beside}/Dest [{first_page + 2 * page} 0 R /Fit] >>".encode())
    parts, length = [b"%PDF-1.4\n"], 9
    places = []
    for number, each in enumerate(objects, 1):
        places.append(length)
        parts.append(f"{number} 0 obj\n".encode() + each + b"\nendobj\n")
        length += len(parts[-1])
    table = b"".join(f"{place:010} 00000 n \n".encode() for place in places)
    size = len(objects) + 1
    return (
        b"".join(parts)
        + f"xref\n0 {size}\n0000000000 65535 f \n".encode()
        + table
        + f"trailer\n<< /Size {size} /Root 1 0 R /Info 5 0 R >>\nstartxref\n{length}\n%%EOF\n".encode()
    )
