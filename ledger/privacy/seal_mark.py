"""How does a sealed value begin? Nothing else that is kept may begin so: no text of a request, and no id."""

from __future__ import annotations

MARK = "sealed:v1:"
