"""Test doubles of the outside world, for tests of Keryx and of programs that use Keryx."""
