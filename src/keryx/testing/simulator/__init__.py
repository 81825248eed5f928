"""The whole gateway in one process under virtual time: a seed defines each run and can replay it."""
