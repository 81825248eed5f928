"""``scripts/bench gateway``: what Keryx adds to a turn, how many it runs, and what it costs to have it running.

The loops are the real ones on a real store with full durability; only the model and the platform are doubles.
"""
