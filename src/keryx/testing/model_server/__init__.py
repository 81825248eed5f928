"""A model provider that plays a script over real HTTP, in OpenAI's shape, in Anthropic's and in Google's."""

from keryx.testing.model_server.script import Asked, Call, Refusal, Reply, Script
from keryx.testing.model_server.server import ModelServer

__all__ = ["Asked", "Call", "ModelServer", "Refusal", "Reply", "Script"]
