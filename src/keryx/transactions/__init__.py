"""Every state change, a file each: reading this folder is reading the system."""
