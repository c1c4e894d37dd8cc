"""What goes wrong in this process? Python imports this first when its folder is on PYTHONPATH; the environment says.

FAULT_POISON: folds fail on the marker of tests/faults/poison.py, as long as the file that it names is there.
FAULT_ARMED: a folder of armed crash points (tests/faults/crash_points.py).
"""

from __future__ import annotations

import os
import sys

_OURS = (
    *("producers.cli.main", "projections.archive.process", "projections.live.rebuild"),
    "projections.vectors.process",
)

if "FAULT_ROOT" in os.environ and any(module in sys.orig_argv for module in _OURS):
    sys.path.insert(0, os.environ["FAULT_ROOT"])
    if "FAULT_POISON" in os.environ:
        from tests.faults import poison

        poison.install(os.environ["FAULT_POISON"])
    if "FAULT_ARMED" in os.environ:
        from tests.faults import crash_points

        crash_points.install(sys.orig_argv)
