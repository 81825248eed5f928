"""A store of sample conversations, made for looking around; see ``keryx.demo.filling``."""
