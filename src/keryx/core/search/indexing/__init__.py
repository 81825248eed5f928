"""The task that keeps the search index up to date, and the worker process that helps it with a large backlog."""
