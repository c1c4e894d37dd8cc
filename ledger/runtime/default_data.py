"""Where a node keeps all it has unless it is told otherwise: a plain module, which costs a command nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Final

DATA: Final = Path(".kledger")
