"""`kledger` of a shell whose commands are forked: `python -I -S launch.py SOCKET PYTHONPATH WORD…`.

It passes its streams on, forwards SIGINT and SIGTERM, and ends as the command does.
"""

from __future__ import annotations

import os
import signal
import sys


def main() -> None:
    """Ask for the command, and wait for its end."""
    at, path, *words = sys.argv[1:]
    sys.path.insert(0, path)
    from tests.processes.request import ask, exit_code, here, umask_of_this_process

    environment = {**os.environ, "PYTHONPATH": path}
    server, _, pidfd = ask(at, words, environment, umask_of_this_process(), here(), (0, 1, 2))
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, _frame: signal.pidfd_send_signal(pidfd, number))
    code = exit_code(server)
    if code < 0:
        signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


if __name__ == "__main__":
    main()
