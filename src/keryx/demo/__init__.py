"""A store of sample conversations to explore; see ``keryx.demo.filling``."""
