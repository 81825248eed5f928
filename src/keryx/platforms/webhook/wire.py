"""Parse and write Standard Webhooks: signed requests, callbacks, and the answers to callbacks.

Pure, and raises no exception for data from the network. A body is parsed only after its signature, over the received
bytes, is verified. The signature covers the message id, so a repeated request is recognised as one message.
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
"""The largest difference between a request's time and ours. Within it, the message id makes a replay harmless."""
RETRY_AFTER_MAX: Final[Micros] = DAY

_REASON_MAX: Final = 300
_SECRET_PREFIX: Final = "whsec_"
_SECRET_BYTES_LEAST: Final = 16
_ID: Final = re.compile(r"[\x21-\x7e]{1,256}")
_TIMESTAMP: Final = re.compile(r"[0-9]{1,12}")
_SECONDS: Final = re.compile(r"[0-9]{1,9}")
_RETRY_STATUSES: Final = frozenset({408, 425, 429, 503})
_INTERNAL_NAMES: Final = re.compile(r"\b(chat|user|thread)_id\b")
_OPTIONAL: Final = ("user_name", "chat_name", "chat_type", "thread")


@dataclass(frozen=True, slots=True, kw_only=True)
class Secret:
    """A key shared with another program, written as ``whsec_`` and base64."""

    key: bytes = field(repr=False)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse a secret in the format of Standard Webhooks; raise ``InvalidValue`` without repeating the text."""
        encoded = text.strip().removeprefix(_SECRET_PREFIX)
        try:
            key = base64.b64decode(encoded + "=" * (-len(encoded) % 4), validate=True)
        except (binascii.Error, ValueError):
            key = b""
        if len(key) < _SECRET_BYTES_LEAST:
            raise InvalidValue(
                f"the webhook secret is not base64 of at least {_SECRET_BYTES_LEAST} bytes; create a secret with "
                "`echo whsec_$(openssl rand -base64 32)`"
            )
        return cls(key=key)

    def sign(self, message_id: str, timestamp: str, body: bytes) -> bytes:
        """Return the signature of a message with this id, sent at this time in seconds."""
        return hmac.digest(self.key, f"{message_id}.{timestamp}.".encode() + body, hashlib.sha256)


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """The answer to a request that is not accepted, in the format of RFC 9457. Nothing of the request is stored."""

    status: int
    detail: str
    code: str | None = None
    """A constant for programs; the detail may change."""
    headers: tuple[tuple[str, str], ...] = ()
    media_type: ClassVar[str] = "application/problem+json"

    def to_json(self) -> bytes:
        """Return the body of the answer."""
        body: dict[str, JsonValue] = {
            "type": "about:blank",
            "title": HTTPStatus(self.status).phrase,
            "status": self.status,
            "detail": self.detail,
        }
        return _dump(body if self.code is None else body | {"code": self.code})


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """The answer to a message that is stored, by this request or an earlier one."""

    id: str
    status: ClassVar[int] = 202
    headers: ClassVar[tuple[tuple[str, str], ...]] = ()
    media_type: ClassVar[str] = "application/json"

    def to_json(self) -> bytes:
        """Return the body of the answer."""
        return _dump({"id": self.id})


@dataclass(frozen=True, slots=True, kw_only=True)
class Callback:
    """A request that delivers one of our messages."""

    headers: Mapping[str, str]
    body: bytes


def parse(
    headers: Mapping[str, str], body: bytes, *, now: Micros, secrets: Sequence[Secret], account: str | None
) -> Inbound | Malformed | Problem:
    """Parse a request; ``headers`` have lower-case names.

    A signed body that cannot be parsed is ``Malformed`` and will be stored; any other failure is a ``Problem``.
    """
    media_type = headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type != "application/json":
        return Problem(status=415, detail="Send JSON, with the header Content-Type: application/json.")
    message_id = _message_id(headers)
    if isinstance(message_id, Problem):
        return message_id
    problem = _check_signature(headers, body, message_id=message_id, now=now, secrets=secrets)
    if problem is not None:
        return problem
    try:
        sent_at = int(headers["webhook-timestamp"]) * SECOND
        return _inbound(_parse_body(body), ref=message_id, account=account, sent_at=sent_at)
    except InvalidValue as error:
        raw = body.decode("utf-8", "backslashreplace")
        # In a message, the fields have shorter names.
        reason = cut(_INTERNAL_NAMES.sub(r"\1", str(error)), _REASON_MAX)
        return Malformed(ref=message_id, raw=raw, reason=reason)


def refusal(refused: Refused) -> Problem:
    """Return the answer for a user without access. It is the same for strangers and for blocked users."""
    if refused.offer_pairing:
        detail = (
            "This user has no access yet, and the message was not stored. A request for access waits for an hour: "
            "the owner answers it with /pair. Send the message again after that."
        )
        return Problem(status=403, detail=detail, code="pairing_required")
    detail = (
        "This user has no access, and the message was not stored. The owner can create a code with /link, or let users "
        "request access, three at a time, by adding webhook to the setting `pairing`; see docs/guide/people.md."
    )
    return Problem(status=403, detail=detail, code="sender_refused")


def render(outgoing: Outgoing, *, now: Micros, secret: Secret) -> Callback:
    """Return the request that delivers a piece; its body and id are the same for every attempt."""
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
    """Return the text that replaces media in a callback: its name, with its link if it has one."""
    name = media.name or media.media_type
    return f"{name}: {media.url}" if media.url else f"({name}: this platform cannot send files)"


def outcome_of(status: int, headers: Mapping[str, str], *, key: str, now: Micros) -> Outcome:
    """Return the outcome of sending the piece with this key; ``headers`` have lower-case names."""
    if 200 <= status < 300:
        return Sent(message_id=key)
    reason = f"the callback answered {status}"
    if status in _RETRY_STATUSES:
        return Rejected(reason=reason, retry_after=_retry_after(headers.get("retry-after", ""), now=now))
    if status == HTTPStatus.GONE:
        return Rejected(reason=f"{reason}: the chat is gone", dead_address=True)
    if 300 <= status < 500:
        return Rejected(reason=reason, permanent=True)
    # The receiver failed, before or after it processed the message.
    return Unknown()


def _message_id(headers: Mapping[str, str]) -> str | Problem:
    """Return the signed id of the message; ``Idempotency-Key`` is another name of the same header."""
    key = headers.get("idempotency-key", "").strip().strip('"')
    message_id = headers.get("webhook-id", "").strip() or key
    if key and key != message_id:
        return Problem(
            status=400, detail="webhook-id and Idempotency-Key differ: send one of them, or the same in both."
        )
    if not message_id:
        return Problem(
            status=401,
            detail="The header webhook-id is missing. Sign requests according to Standard Webhooks.",
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
            detail="webhook-timestamp is more than five minutes off. Sign each attempt again; check the clocks.",
        )
    given = _signatures(headers.get("webhook-signature", ""))
    expected = [secret.sign(message_id, timestamp, body) for secret in secrets]
    if not any(hmac.compare_digest(one, other) for one in expected for other in given):
        return Problem(
            status=401,
            detail="No signature in webhook-signature is valid. Sign the bytes of the body, with our secret.",
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


def _parse_body(body: bytes) -> Mapping[str, JsonValue]:
    try:
        parsed = json.loads(body.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise InvalidValue(f"The body is not UTF-8 from byte {error.start} on.") from None
    except RecursionError:
        raise InvalidValue("The body is nested too deeply.") from None
    except ValueError as error:
        raise InvalidValue(f"The body is not JSON: {error}.") from None
    if not isinstance(parsed, dict):
        raise InvalidValue("The body must be a JSON object with chat, user and text.")
    return parsed


def _inbound(body: Mapping[str, JsonValue], *, ref: str, account: str | None, sent_at: Micros) -> Inbound:
    required = {name: _string(body, name) for name in ("chat", "user", "text")}
    for name, value in required.items():
        if value is None or not value.strip():
            raise InvalidValue(f"{name} is missing or empty: give a string.")
    optional = {name: _string(body, name) for name in _OPTIONAL}
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


def _string(body: Mapping[str, JsonValue], name: str) -> str | None:
    value = body.get(name)
    if value is None or isinstance(value, str):
        return value
    raise InvalidValue(f"{name} must be a string.")


def _retry_after(text: str, *, now: Micros) -> Micros | None:
    """Return the time of a ``Retry-After`` header, given in seconds or as a date; None if it is not valid."""
    if _SECONDS.fullmatch(text.strip()):
        wait = int(text) * SECOND
    else:
        try:
            wait = int(parsedate_to_datetime(text).timestamp()) * SECOND - now
        except (ValueError, OverflowError):
            return None
    return min(max(wait, 0), RETRY_AFTER_MAX)


def _dump(value: JsonValue) -> bytes:
    # ASCII, so that a lone surrogate is sent as an escape, as it was received.
    return json.dumps(value, separators=(",", ":")).encode("ascii")
