"""Background processes on this machine: one small detached supervisor each."""
