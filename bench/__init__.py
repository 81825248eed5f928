"""The benchmark: Keryx beside the raw limit of its database and beside its peers.

Not part of the package or of the test suite. Whatever runs inside a peer's interpreter imports only the standard
library and that peer, so that no contender pays for another.
"""
