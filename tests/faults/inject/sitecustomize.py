"""What goes wrong in this process? Python imports this first when its folder is on PYTHONPATH; the environment says.

FAULT_POISON: folds fail on the marker of tests/faults/poison.py, as long as the file that it names is there.
"""

from __future__ import annotations

import os
import sys

if os.environ.get("FAULT_POISON") and not sys.flags.isolated:
    sys.path.insert(0, os.environ["FAULT_ROOT"])
    from tests.faults import poison

    poison.install(os.environ["FAULT_POISON"])
