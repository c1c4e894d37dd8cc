"""Whether the system lets a node have the threads that it needs: it is tried, as limits of users and containers nest.

Without them DuckDB ends the process, or Quack takes connections that nobody ever answers.
"""

from __future__ import annotations

import _thread
import threading

from kledger.contract.errors import NodeMisconfigured

NEEDED = 40
"""Those of a node, its broker and its vector process; measured: 19 idle, and more while a job runs."""
OF_QUACK = 120
"""More, of Quack's server: it begins 128 at once."""


def check_threads(quack: bool) -> None:
    """Begin as many threads as the node will, and end them. Raises NodeMisconfigured: the system refuses one."""
    needed = NEEDED + OF_QUACK * quack
    waits, left = _thread.allocate_lock(), threading.Semaphore(0)
    waits.acquire()

    def one() -> None:
        with waits:
            pass
        left.release()

    begun = 0
    try:
        while begun < needed:
            _thread.start_new_thread(one, ())
            begun += 1
    except RuntimeError as error:
        fewer = "" if not quack else f", or give --quack off, with which {NEEDED} do"
        raise NodeMisconfigured(
            f"the system lets this user begin {begun} further threads, and a node needs {needed}: raise the limit of "
            f"processes, of the user (ulimit -u) or the container (pids-limit, TasksMax){fewer}"
        ) from error
    finally:
        waits.release()
        for _ in range(begun):
            left.acquire()
