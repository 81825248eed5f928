"""The contract between the supervisor and its starter: file names, requests and answers."""

CONTROL = "control"
"""The socket for requests."""
LOCK = "lock"
END = "end"
"""The record of how the process ended. The file is there whole, or not at all."""
OUTPUT = "output."
"""The prefix of the output files. The rest of the name is the position of the file's first byte in the whole output."""
TROUBLE = "trouble"
"""The supervisor's own error output."""

WRITE, CLOSE, KILL = b"w", b"c", b"k"
"""The first byte of a request. Input to write follows it."""
DONE, ENDED, CLOSED, FULL = b"done", b"ended", b"closed", b"full"
"""The answers to a request."""


class SupervisedCommand:
    """The command to run, the limit of its stored output, and its time to end after SIGTERM."""

    def __init__(
        self,
        *,
        arguments: list[str],
        workdir: str,
        environment: dict[str, str],
        has_pty: bool,
        output_bytes_max: int,
        kill_seconds: float,
    ) -> None:
        self.arguments = arguments
        self.workdir = workdir
        self.environment = environment
        self.has_pty = has_pty
        self.output_bytes_max = output_bytes_max
        self.kill_seconds = kill_seconds
