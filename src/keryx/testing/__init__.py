"""What tests of Keryx, and of programs built on it, need: stand-ins for the outside world."""
