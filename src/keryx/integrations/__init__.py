"""Keryx as the memory of other agent frameworks. Each module needs the extra that installs its framework."""
