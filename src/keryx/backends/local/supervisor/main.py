"""The main program of the supervisor.

It works in the folder of its process (see ``folder``), inherits the folder's lock and holds it until it ends. It starts
nothing before it has read the whole command. If its starter dies before that, the supervisor ends too.
"""

import json
import os
import socket
import sys
import time

from .protocol import CONTROL, END, SupervisedCommand
from .supervised_process import SupervisedProcess

RETRY_SECONDS = 1.0


def listen() -> socket.socket:
    """Open the socket for requests. Its path is relative, because the path of the folder may be too long."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(CONTROL)
    listener.listen(16)
    listener.settimeout(0.0)
    return listener


def write_end(*, exit_code: int, was_killed: bool, output_bytes: int) -> None:
    """Write the record of the end, whole or not at all, as soon as the disk takes it."""
    record = {"exit_code": exit_code, "was_killed": was_killed, "output_bytes": output_bytes}
    while True:
        try:
            with open(f"{END}.new", "w", encoding="ascii") as file:
                json.dump(record, file)
                file.flush()
                os.fsync(file.fileno())
            os.replace(f"{END}.new", END)
            folder = os.open(".", os.O_RDONLY)
            os.fsync(folder)
            os.close(folder)
        except FileNotFoundError:
            return  # the folder was removed, so no process will read the record
        except OSError:
            time.sleep(RETRY_SECONDS)
        else:
            return


def supervise(command: bytes, listener: socket.socket) -> None:
    """Run a command to its end; a command that was not received whole is not run."""
    try:
        parsed = SupervisedCommand(**json.loads(command))
    except ValueError:
        return
    supervised = SupervisedProcess(parsed, listener)
    supervised.run()
    assert supervised.exit_code is not None
    write_end(
        exit_code=supervised.exit_code,
        was_killed=supervised.was_killed,
        output_bytes=supervised.output.total,
    )


def main() -> None:
    """Detach, write the pid, read the command and run it."""
    listener = listen()
    pid = os.fork()
    if pid:
        os.write(1, b"%d\n" % pid)
        os._exit(0)
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 1)
    command = sys.stdin.buffer.read()
    os.dup2(nowhere, 0)
    supervise(command, listener)
