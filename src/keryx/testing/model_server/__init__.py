"""A model provider that plays a script over real HTTP, with the protocols of OpenAI, Anthropic and Google."""

from keryx.testing.model_server.script import Asked, Call, Refusal, Reply, Script
from keryx.testing.model_server.server import ModelServer

__all__ = ["Asked", "Call", "ModelServer", "Refusal", "Reply", "Script"]
