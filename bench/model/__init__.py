"""``scripts/bench model``: what Keryx adds to a model's answer, and what it costs to have a provider loaded.

The gateway, its store and the provider's package are the real ones; the provider is a scripted server in a process of
its own, so that its work is nobody's time but its own.
"""
