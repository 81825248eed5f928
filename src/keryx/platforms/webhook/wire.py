"""Standard Webhooks, read and written: what a signed request says, what a callback says, what its answer means.

Pure, and never raises for what came over the network. Only what one of the secrets has signed, over the bytes as they
came, is looked into; the id that makes a repetition one message is part of what is signed.
"""

import base64
import binascii
import hashlib
import hmac
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import field
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import ClassVar, Final, Self

from keryx.clock import DAY, MINUTE, SECOND, Micros
from keryx.core.conversations.rules.part import MediaPart, TextPart
from keryx.core.conversations.rules.source import Source, check_chat_type
from keryx.core.deliveries.rules.delivery import Outcome, Rejected, Sent, Unknown
from keryx.core.deliveries.rules.pieces import MediaPiece
from keryx.core.people.rules.access import Refused
from keryx.core.turns.rules.inbox import Inbound
from keryx.core.values.graphemes import cut
from keryx.core.values.json_value import JsonValue
from keryx.errors import InvalidValue
from keryx.platforms.adapter import Malformed, Outgoing
from keryx.values import dataclass

PLATFORM: Final = "webhook"
TOLERANCE: Final[Micros] = 5 * MINUTE
"""How far a request's time may be from ours: within it, the id makes a repetition harmless."""
RETRY_AFTER_MAX: Final[Micros] = DAY
"""A receiver that wants to be left alone for longer is asked again anyway."""

_REASON_MAX: Final = 300
_SECRET_PREFIX: Final = "whsec_"
_SECRET_BYTES_LEAST: Final = 16
_ID: Final = re.compile(r"[\x21-\x7e]{1,256}")
_TIMESTAMP: Final = re.compile(r"[0-9]{1,12}")
_SECONDS: Final = re.compile(r"[0-9]{1,9}")
_TRY_AGAIN: Final = frozenset({408, 425, 429, 503})
_OUR_NAMES: Final = re.compile(r"\b(chat|user|thread)_id\b")
_OPTIONAL: Final = ("user_name", "chat_name", "chat_type", "thread")


@dataclass(frozen=True, slots=True, kw_only=True)
class Secret:
    """A key shared with the other side, written ``whsec_`` and base64."""

    key: bytes = field(repr=False)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a secret as Standard Webhooks writes it, or raise ``InvalidValue`` without repeating it."""
        encoded = text.strip().removeprefix(_SECRET_PREFIX)
        try:
            key = base64.b64decode(encoded + "=" * (-len(encoded) % 4), validate=True)
        except (binascii.Error, ValueError):
            key = b""
        if len(key) < _SECRET_BYTES_LEAST:
            raise InvalidValue(
                f"the webhook secret is no base64 of {_SECRET_BYTES_LEAST} bytes or more: make one with "
                "`echo whsec_$(openssl rand -base64 32)`"
            )
        return cls(key=key)

    def sign(self, message_id: str, timestamp: str, body: bytes) -> bytes:
        """Return the signature of a message sent under an id at a time, in seconds."""
        return hmac.digest(self.key, f"{message_id}.{timestamp}.".encode() + body, hashlib.sha256)


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Why a request was not taken, as RFC 9457 says it; nothing of it was kept."""

    status: int
    detail: str
    code: str | None = None
    """For programs: it stays the same, whatever the words."""
    headers: tuple[tuple[str, str], ...] = ()
    media_type: ClassVar[str] = "application/problem+json"

    def to_json(self) -> bytes:
        """Return the body of the answer."""
        title = HTTPStatus(self.status).phrase
        told: dict[str, JsonValue] = {
            "type": "about:blank",
            "title": title,
            "status": self.status,
            "detail": self.detail,
        }
        return _dump(told if self.code is None else told | {"code": self.code})


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """The answer to a message that is stored, now or by an earlier request."""

    id: str
    status: ClassVar[int] = 202
    headers: ClassVar[tuple[tuple[str, str], ...]] = ()
    media_type: ClassVar[str] = "application/json"

    def to_json(self) -> bytes:
        """Return the body of the answer."""
        return _dump({"id": self.id})


@dataclass(frozen=True, slots=True, kw_only=True)
class Callback:
    """A request to the receiver of our messages."""

    headers: Mapping[str, str]
    body: bytes


def parse(
    headers: Mapping[str, str], body: bytes, *, now: Micros, secrets: Sequence[Secret], account: str | None
) -> Inbound | Malformed | Problem:
    """Read a request; ``headers`` have lower-case names.

    What is signed and cannot be read is ``Malformed``, to be kept; everything else that is wrong is a ``Problem``.
    """
    media_type = headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type != "application/json":
        return Problem(status=415, detail="Send JSON, with the header Content-Type: application/json.")
    message_id = _message_id(headers)
    if isinstance(message_id, Problem):
        return message_id
    refused = _check_signature(headers, body, message_id=message_id, now=now, secrets=secrets)
    if refused is not None:
        return refused
    try:
        said = _read_body(body)
        return _inbound(
            said, ref=message_id, account=account, sent_at=int(headers["webhook-timestamp"]) * SECOND
        )
    except InvalidValue as error:
        raw = body.decode("utf-8", "backslashreplace")
        # Whoever sent it knows the fields by the names of the message.
        reason = cut(_OUR_NAMES.sub(r"\1", str(error)), _REASON_MAX)
        return Malformed(ref=message_id, raw=raw, reason=reason)


def refusal(refused: Refused) -> Problem:
    """Return what a program is told whose user may not speak: the same of strangers and of those who were shut out."""
    if refused.offer_pairing:
        detail = (
            "This user is not let in yet, and the message was not kept. A request to be let in waits for an hour: "
            "the owner answers it with /pair. Send the message again after that."
        )
        return Problem(status=403, detail=detail, code="pairing_required")
    detail = (
        "This user is not let in, and the message was not kept. The owner can give out a code with /link, or let users "
        "ask, three at a time, by adding webhook to the setting `pairing`; docs/guide/people.md tells how."
    )
    return Problem(status=403, detail=detail, code="sender_refused")


def render(outgoing: Outgoing, *, now: Micros, secret: Secret) -> Callback:
    """Return the request that carries a piece; its body and id are the same at every attempt."""
    piece = outgoing.piece
    body = _dump(
        {
            "chat": outgoing.to.chat_id,
            "thread": outgoing.to.thread_id,
            "text": media_text(piece.media) if isinstance(piece, MediaPiece) else piece.text,
            "reply_to": outgoing.reply_to,
            "id": outgoing.key,
        }
    )
    timestamp = str(now // SECOND)
    signature = base64.b64encode(secret.sign(outgoing.key, timestamp, body)).decode("ascii")
    headers = {
        "content-type": "application/json",
        "webhook-id": outgoing.key,
        "webhook-timestamp": timestamp,
        "webhook-signature": f"v1,{signature}",
    }
    return Callback(headers=headers, body=body)


def media_text(media: MediaPart) -> str:
    """Say in words what a callback cannot carry: a link to it, or what it is."""
    name = media.name or media.media_type
    return f"{name}: {media.url}" if media.url else f"({name}: a file that this platform does not carry)"


def outcome_of(status: int, headers: Mapping[str, str], *, key: str, now: Micros) -> Outcome:
    """Return what the receiver's answer says about the piece sent under ``key``; ``headers`` have lower-case names."""
    if 200 <= status < 300:
        return Sent(message_id=key)
    reason = f"the callback answered {status}"
    if status in _TRY_AGAIN:
        return Rejected(reason=reason, retry_after=_retry_after(headers.get("retry-after", ""), now=now))
    if status == HTTPStatus.GONE:
        return Rejected(reason=f"{reason}: the chat is gone", dead_address=True)
    if 300 <= status < 500:
        return Rejected(reason=reason, permanent=True)
    # It failed over there, before or after it took the message.
    return Unknown()


def _message_id(headers: Mapping[str, str]) -> str | Problem:
    """Return the id the request was signed under; ``Idempotency-Key`` is another name of the same header."""
    key = headers.get("idempotency-key", "").strip().strip('"')
    message_id = headers.get("webhook-id", "").strip() or key
    if key and key != message_id:
        return Problem(
            status=400, detail="webhook-id and Idempotency-Key differ: send one of them, or the same in both."
        )
    if not message_id:
        return Problem(
            status=401, detail="The header webhook-id is missing. Sign requests as Standard Webhooks says."
        )
    if not _ID.fullmatch(message_id):
        return Problem(status=400, detail="webhook-id must be 1 to 256 visible ASCII characters.")
    return message_id


def _check_signature(
    headers: Mapping[str, str], body: bytes, *, message_id: str, now: Micros, secrets: Sequence[Secret]
) -> Problem | None:
    timestamp = headers.get("webhook-timestamp", "")
    if not _TIMESTAMP.fullmatch(timestamp):
        return Problem(status=401, detail="webhook-timestamp must be the time in whole seconds since 1970.")
    if abs(int(timestamp) * SECOND - now) > TOLERANCE:
        return Problem(
            status=401,
            detail="webhook-timestamp is more than five minutes off. Sign each attempt anew; check the clocks.",
        )
    given = _signatures(headers.get("webhook-signature", ""))
    expected = [secret.sign(message_id, timestamp, body) for secret in secrets]
    if not any(hmac.compare_digest(one, other) for one in expected for other in given):
        return Problem(
            status=401,
            detail="No signature in webhook-signature fits. Sign the bytes that are sent, with our secret.",
        )
    return None


def _signatures(header: str) -> list[bytes]:
    found = []
    for each in header.split():
        version, _, encoded = each.partition(",")
        if version == "v1":
            try:
                found.append(base64.b64decode(encoded, validate=True))
            except (binascii.Error, ValueError):
                continue
    return found


def _read_body(body: bytes) -> Mapping[str, JsonValue]:
    try:
        said = json.loads(body.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise InvalidValue(f"The body is not UTF-8 from byte {error.start} on.") from None
    except RecursionError:
        raise InvalidValue("The body is nested too deep.") from None
    except ValueError as error:
        raise InvalidValue(f"The body is not JSON: {error}.") from None
    if not isinstance(said, dict):
        raise InvalidValue("The body must be a JSON object with chat, user and text.")
    return said


def _inbound(said: Mapping[str, JsonValue], *, ref: str, account: str | None, sent_at: Micros) -> Inbound:
    required = {name: _string(said, name) for name in ("chat", "user", "text")}
    for name, value in required.items():
        if value is None or not value.strip():
            raise InvalidValue(f"{name} is missing or empty: give it as a string.")
    optional = {name: _string(said, name) for name in _OPTIONAL}
    source = Source(
        platform=PLATFORM,
        account=account,
        chat_id=required["chat"] or "",
        chat_name=optional["chat_name"],
        chat_type=check_chat_type(optional["chat_type"] or "dm"),
        user_id=required["user"],
        user_name=optional["user_name"],
        thread_id=optional["thread"],
        message_id=ref,
    )
    return Inbound(source=source, ref=ref, parts=(TextPart(text=required["text"] or ""),), sent_at=sent_at)


def _string(said: Mapping[str, JsonValue], name: str) -> str | None:
    value = said.get(name)
    if value is None or isinstance(value, str):
        return value
    raise InvalidValue(f"{name} must be a string.")


def _retry_after(text: str, *, now: Micros) -> Micros | None:
    """Return how long a receiver wants to be left alone, written in seconds or as a date."""
    if _SECONDS.fullmatch(text.strip()):
        wait = int(text) * SECOND
    else:
        try:
            wait = int(parsedate_to_datetime(text).timestamp()) * SECOND - now
        except (ValueError, OverflowError):
            return None
    return min(max(wait, 0), RETRY_AFTER_MAX)


def _dump(value: JsonValue) -> bytes:
    # ASCII: what is half a character goes out as an escape, as it came in.
    return json.dumps(value, separators=(",", ":")).encode("ascii")
