"""The pieces of a delivery: each is one message of a platform, a text or a medium."""

from typing import Literal, TypeAlias

from keryx.core.conversations.rules.part import MediaPart
from keryx.values import dataclass

TextUnit = Literal["characters", "utf-16", "bytes"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TextPiece:
    """A text short enough for one message."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MediaPiece:
    """A picture, sound or file."""

    media: MediaPart


Piece: TypeAlias = TextPiece | MediaPiece
