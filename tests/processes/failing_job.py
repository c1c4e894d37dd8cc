"""A job that says that it has begun, and then hangs, or is killed as it writes its result."""

from __future__ import annotations

import json
import os
import signal
import sys

if __name__ == "__main__":
    ends_by = json.loads(sys.stdin.readline())["ends_by"]
    sys.stdout.write('{"done": 1, "total": 2, "rate": 3.0}\n{"result": {"hea')
    sys.stdout.flush()
    os.kill(os.getpid(), {"hanging": signal.SIGSTOP, "a kill": signal.SIGKILL}[ends_by])
