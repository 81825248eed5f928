"""The whole gateway in one process under virtual time: every run is made by its seed, and can be run again."""
