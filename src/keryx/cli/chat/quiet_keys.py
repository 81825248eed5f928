"""The terminal's mode during a chat: keys wait until they are read, and are not echoed."""

import sys
import termios
import tty
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TextIO

from keryx.cli.chat.streams import drop_output


@contextmanager
def quiet_keys() -> Iterator[None]:
    """Let every key wait until it is read: nothing is echoed, and the terminal does not swallow Ctrl-D."""
    before = termios.tcgetattr(sys.stdin)
    changed = termios.tcgetattr(sys.stdin)
    changed[tty.IFLAG] &= ~termios.ICRNL
    changed[tty.LFLAG] &= ~(termios.ECHO | termios.ICANON)
    termios.tcsetattr(sys.stdin, termios.TCSANOW, changed)
    try:
        yield
    finally:
        with suppress(termios.error):  # the terminal is gone
            termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)
        for stream in (sys.stdout, sys.stderr):
            _flush(stream)


def _flush(stream: TextIO) -> None:
    """Write the rest of a stream, or drop it if that fails: otherwise the exit of the process would fail."""
    try:
        stream.flush()
    except OSError:
        drop_output(stream)
