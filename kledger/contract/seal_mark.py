"""Prefix of every sealed value. No text of a request and no id may begin with it."""

from __future__ import annotations

MARK = "sealed:v1:"
