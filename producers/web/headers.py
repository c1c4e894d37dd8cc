"""Headers of every page: what a browser may load and run there, and who may keep a copy."""

from __future__ import annotations

POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "form-action 'self'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
    )
)
OF_EVERY_ANSWER = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # With no-referrer a browser would not say the origin of its own forms, which the guard asks for.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
OF_A_PAGE = {**OF_EVERY_ANSWER, "Cache-Control": "no-store", "Vary": "Cookie, Accept-Language"}
"""A page is its reader's alone: no cache keeps it, nor does the browser after signing out."""
OF_A_FILE = {**OF_EVERY_ANSWER, "Cache-Control": "public, max-age=31536000, immutable"}
"""A file's address names its content, so that it never changes."""
