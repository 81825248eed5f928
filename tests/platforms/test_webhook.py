"""The webhook platform, with programs that use the reference library of Standard Webhooks."""

import asyncio
import base64
import json
import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any

import httpx2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from standardwebhooks import Webhook

from keryx.clock import DAY, SECOND, SystemClock
from keryx.config import Settings
from keryx.core.conversations.rules.part import MediaPart, TextPart
from keryx.core.conversations.rules.source import Source
from keryx.core.deliveries.rules.delivery import Outcome, Rejected, Sent, Unknown
from keryx.core.deliveries.rules.pieces import MediaPiece, TextPiece
from keryx.core.deliveries.rules.route import Address
from keryx.core.people.tables import people
from keryx.core.people.transactions.pair_stranger import approve_pairing
from keryx.core.turns.rules.inbox import Inbound
from keryx.errors import InvalidValue, NotConnected
from keryx.gateway.gateway import Gateway
from keryx.gateway.runtime.runtime import Runtime
from keryx.ids import Ids
from keryx.platforms.adapter import Adapter, Malformed, Outgoing, Update
from keryx.platforms.webhook.adapter import (
    ANSWER_BYTES_MAX,
    CONNECTIONS_MAX,
    WAITING_MAX,
    WebhookAdapter,
    WebhookSettings,
)
from keryx.platforms.webhook.request import BODY_BYTES_MAX
from keryx.platforms.webhook.wire import Problem, Secret, media_text, outcome_of, parse, render
from keryx.store.database import Database
from keryx.store.opening import open_database
from keryx.testing.adapter_contract import AdapterContract, Fault, texts
from keryx.testing.platform import FakePlatform
from keryx.tools.tool import Toolbox
from tests.flow.running import Actor, let_in, until

SECRET = "whsec_" + base64.b64encode(b"a secret of 24 bytes ...").decode()
OTHER = "whsec_" + base64.b64encode(b"another one of 24 bytes.").decode()
HELLO = b'{"chat":"room","user":"ana","text":"hello"}'
NOW = 1_790_000_000 * SECOND

Headers = dict[str, str]


def signed(body: bytes, *, id: str = "msg_1", at: int | None = None, secret: str = SECRET) -> Headers:  # noqa: A002
    """Return the headers of the reference library, which signs only text."""
    seconds = SystemClock().now() // SECOND if at is None else at
    moment = datetime.fromtimestamp(seconds, tz=UTC)
    return {
        "content-type": "application/json",
        "webhook-id": id,
        "webhook-timestamp": str(seconds),
        "webhook-signature": Webhook(secret).sign(id, moment, body.decode()),
    }


def signed_bytes(body: bytes) -> Headers:
    """Return signed headers for any bytes at NOW; the reference library refuses bytes."""
    seconds = str(NOW // SECOND)
    signature = base64.b64encode(Secret.parse(SECRET).sign("msg_1", seconds, body)).decode()
    return signed(b"", at=NOW // SECOND) | {"webhook-signature": f"v1,{signature}"}


def read(headers: Headers, body: bytes = HELLO, *, now: int = NOW) -> Inbound | Malformed | Problem:
    return parse(headers, body, now=now, secrets=[Secret.parse(SECRET)], account=None)


def refusal(headers: Headers, body: bytes = HELLO, *, now: int = NOW) -> tuple[int, str]:
    problem = read(headers, body, now=now)
    assert isinstance(problem, Problem)
    return problem.status, problem.detail


# ------------------------------------------------------------------------------------------- what comes in


def test_all_fields_of_a_signed_message_are_read() -> None:
    said = {
        "chat": "room",
        "user": "u-7",
        "user_name": "Ana",
        "chat_name": "The room",
        "chat_type": "group",
        "thread": "t-1",
        "text": "Hello, 世界 \ud83d",
        "unknown": 1,
    }
    body = json.dumps(said).encode()
    assert read(signed(body, at=NOW // SECOND), body) == Inbound(
        source=Source(
            platform="webhook",
            chat_id="room",
            chat_type="group",
            chat_name="The room",
            user_id="u-7",
            user_name="Ana",
            thread_id="t-1",
            message_id="msg_1",
        ),
        ref="msg_1",
        parts=(TextPart(text="Hello, 世界 \ud83d"),),
        sent_at=NOW,
    )


def test_a_chat_is_a_direct_message_by_default() -> None:
    update = read(signed(HELLO, at=NOW // SECOND))
    assert isinstance(update, Inbound)
    assert (update.source.chat_type, update.source.thread_id) == ("dm", None)


@pytest.mark.parametrize(("seconds_off", "taken"), [(300, True), (-300, True), (301, False), (-301, False)])
def test_a_request_is_valid_for_five_minutes(seconds_off: int, *, taken: bool) -> None:
    headers = signed(HELLO, at=NOW // SECOND + seconds_off)
    if taken:
        assert isinstance(read(headers), Inbound)
    else:
        assert refusal(headers)[0] == 401


@pytest.mark.parametrize(
    ("change", "status", "words"),
    [
        ({"webhook-signature": ""}, 401, "No signature"),
        ({"webhook-signature": "v1,AAAA v1a,x v1,%% nonsense"}, 401, "No signature"),
        ({"webhook-id": "msg_2"}, 401, "No signature"),
        ({"webhook-id": ""}, 401, "webhook-id is missing"),
        ({"webhook-id": "zwölf"}, 400, "visible ASCII"),
        ({"webhook-id": "x" * 257}, 400, "256"),
        ({"idempotency-key": "other"}, 400, "differ"),
        ({"webhook-timestamp": ""}, 401, "whole seconds"),
        ({"webhook-timestamp": "٣"}, 401, "whole seconds"),
        ({"webhook-timestamp": "1e9"}, 401, "whole seconds"),
        ({"webhook-timestamp": "0"}, 401, "five minutes"),
        ({"content-type": "text/plain"}, 415, "application/json"),
        ({"content-type": ""}, 415, "application/json"),
    ],
)
def test_a_request_without_a_valid_signature_is_refused(change: Headers, status: int, words: str) -> None:
    got, detail = refusal(signed(HELLO, at=NOW // SECOND) | change)
    assert got == status
    assert words in detail


def test_one_changed_byte_breaks_the_signature() -> None:
    assert refusal(signed(HELLO, at=NOW // SECOND), HELLO.replace(b"hello", b"hellp"))[0] == 401


def test_a_secret_can_be_replaced_while_both_are_in_use() -> None:
    both = [Secret.parse(SECRET), Secret.parse(OTHER)]
    for secret in (SECRET, OTHER):
        headers = signed(HELLO, at=NOW // SECOND, secret=secret)
        assert isinstance(parse(headers, HELLO, now=NOW, secrets=both, account="second"), Inbound)
    headers = signed(HELLO, at=NOW // SECOND)
    headers["webhook-signature"] = f"v1,AAAA {headers['webhook-signature']}"
    assert isinstance(read(headers), Inbound)


def test_an_idempotency_key_is_another_name_of_the_signed_id() -> None:
    headers = signed(HELLO, at=NOW // SECOND) | {"idempotency-key": '"msg_1"'}
    assert isinstance(read(headers), Inbound)
    del headers["webhook-id"]
    update = read(headers)
    assert isinstance(update, Inbound)
    assert update.ref == "msg_1"
    assert refusal(headers | {"idempotency-key": "msg_2"})[0] == 401


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"\xff{}", "not UTF-8"),
        (b"{", "not JSON"),
        (b"[" * 100_000, "nested too deep"),
        (b"1" * 5_000, "not JSON"),
        (b"[]", "JSON object"),
        (b'{"chat":"c","user":"u"}', "text is missing"),
        (b'{"chat":"c","user":"","text":"x"}', "user is missing"),
        (b'{"chat":"c","user":"u","text":" \\n"}', "text is missing"),
        (b'{"chat":1,"user":"u","text":"x"}', "chat must be a string"),
        (b'{"chat":"c","user":"u","text":"x","thread":""}', "thread is empty"),
        (b'{"chat":"c","user":"u","text":"x","chat_type":"thread"}', "needs a thread"),
        (b'{"chat":"%s","user":"u","text":"x"}' % (b"c" * 513), "chat 'ccc"),
        (b'{"chat":"c","user":"u","text":"x","chat_type":"party"}', "chat_type 'party'"),
        (b'{"chat":"c\\u0000","user":"u","text":"x"}', "chat 'c\\x00' holds a NUL"),
    ],
)
def test_a_signed_body_that_cannot_be_parsed_is_malformed_with_the_reason(body: bytes, words: str) -> None:
    update = read(signed_bytes(body), body)
    assert isinstance(update, Malformed)
    assert words in update.reason
    assert (update.ref, update.raw) == ("msg_1", body.decode("utf-8", "backslashreplace"))


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
names = st.sampled_from(["chat", "user", "text", "thread", "chat_type", "user_name", "chat_name", "more"])
bodies = st.binary() | st.dictionaries(names, json_values).map(lambda said: json.dumps(said).encode())


@given(bodies)
@settings(max_examples=100, deadline=None)
def test_no_signed_body_raises(body: bytes) -> None:
    assert isinstance(read(signed_bytes(body), body), Inbound | Malformed)


header_names = st.sampled_from([*signed(HELLO), "idempotency-key"])


@given(st.dictionaries(header_names, st.text()), st.binary(), st.integers())
@settings(max_examples=200, deadline=None)
def test_no_headers_raise(headers: Headers, body: bytes, now: int) -> None:
    json_headers = {"content-type": "application/json"}
    for given_headers in (headers, headers | json_headers, signed(HELLO, at=NOW // SECOND) | headers):
        assert isinstance(read(given_headers, body, now=now), Inbound | Malformed | Problem)


@pytest.mark.parametrize(
    "text", ["", "whsec_", "whsec_c2hvcnQ=", "whsec_%%%", "schlüssel", "whsec_" + "A" * 5]
)
def test_a_weak_or_broken_secret_is_refused_without_repeating_it(text: str) -> None:
    with pytest.raises(InvalidValue, match="at least 16 bytes") as caught:
        Secret.parse(text)
    secret = text.removeprefix("whsec_")
    assert not secret or secret not in str(caught.value)


def test_a_secret_is_not_in_its_repr() -> None:
    assert "24 bytes" not in repr(Secret.parse(SECRET))
    assert Secret.parse(SECRET.removeprefix("whsec_").rstrip("=")) == Secret.parse(SECRET)


# ------------------------------------------------------------------------------------------- what goes out


def outgoing(text: str = "hello", *, key: str = "k-0", reply_to: str | None = None) -> Outgoing:
    to = Address(platform="webhook", chat_id="room", thread_id="t-1")
    return Outgoing(to=to, piece=TextPiece(text=text), key=key, reply_to=reply_to)


@given(st.text())
@settings(max_examples=100, deadline=None)
def test_the_reference_library_verifies_what_we_sign(text: str) -> None:
    callback = render(outgoing(text, reply_to="msg_1"), now=SystemClock().now(), secret=Secret.parse(SECRET))
    assert Webhook(SECRET).verify(callback.body, dict(callback.headers)) == {
        "chat": "room",
        "thread": "t-1",
        "text": text,
        "reply_to": "msg_1",
        "id": "k-0",
    }


def test_media_are_replaced_by_text() -> None:
    linked = MediaPart(media_type="image/png", name="a.png", url="https://example.org/a.png")
    kept = MediaPart(media_type="image/png", blob="0" * 64)
    assert media_text(linked) == "a.png: https://example.org/a.png"
    assert media_text(kept) == "(image/png: this platform cannot send files)"
    piece = Outgoing(to=outgoing().to, piece=MediaPiece(media=linked), key="k")
    body = json.loads(render(piece, now=NOW, secret=Secret.parse(SECRET)).body)
    assert body["text"] == media_text(linked)


GONE = Rejected(reason="the callback answered 410: the chat is gone", dead_address=True)


@pytest.mark.parametrize(
    ("status", "retry_after", "outcome"),
    [
        (200, "", Sent(message_id="k-0")),
        (204, "", Sent(message_id="k-0")),
        (302, "", Rejected(reason="the callback answered 302", permanent=True)),
        (400, "", Rejected(reason="the callback answered 400", permanent=True)),
        (401, "", Rejected(reason="the callback answered 401", permanent=True)),
        (410, "", GONE),
        (408, "", Rejected(reason="the callback answered 408")),
        (429, "7", Rejected(reason="the callback answered 429", retry_after=7 * SECOND)),
        (429, "999999999", Rejected(reason="the callback answered 429", retry_after=DAY)),
        (503, "soon", Rejected(reason="the callback answered 503")),
        (500, "", Unknown()),
        (504, "", Unknown()),
    ],
)
def test_the_callback_s_answer_decides_the_outcome(status: int, retry_after: str, outcome: Outcome) -> None:
    assert outcome_of(status, {"retry-after": retry_after}, key="k-0", now=NOW) == outcome


def test_retry_after_may_be_a_date() -> None:
    for seconds, wait in ((90, 90 * SECOND), (-90, 0)):
        date = datetime.fromtimestamp(NOW // SECOND + seconds, tz=UTC).strftime("%a, %d %b %Y %H:%M:%S GMT")
        outcome = outcome_of(503, {"retry-after": date}, key="k-0", now=NOW)
        assert outcome == Rejected(reason="the callback answered 503", retry_after=wait)


@given(st.integers(min_value=100, max_value=999), st.text())
@settings(max_examples=200, deadline=None)
def test_no_answer_raises(status: int, retry_after: str) -> None:
    outcome = outcome_of(status, {"retry-after": retry_after}, key="k-0", now=NOW)
    assert isinstance(outcome, Sent | Rejected | Unknown)


# ------------------------------------------------------------------------------------- programs around us


class Receiver:
    """A program that receives callbacks, verifies them with the reference library and shows each id once."""

    def __init__(self) -> None:
        # Bound but not listening, so that the port is reserved while the program is down.
        self._port = socket.socket()
        self._port.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._port.bind(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._port.getsockname()[1]}/answers"
        self.shown: dict[str, Any] = {}
        self.fault: Fault | None = None
        self.reply: Callable[[asyncio.StreamWriter], Awaitable[None]] | None = None
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        if self._server is None:
            host, port = self._port.getsockname()
            self._server = await asyncio.start_server(self._connected, host, port, reuse_address=True)

    async def stop(self) -> None:
        server, self._server = self._server, None
        if server is not None:
            server.close()
            await server.wait_closed()

    async def close(self) -> None:
        await self.stop()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._port.close()

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in head[1:])}
            body = await reader.readexactly(int(headers["content-length"]))
            said = Webhook(SECRET).verify(body, headers)
            await self._take(headers["webhook-id"], said, writer)
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    async def _take(self, message_id: str, said: Any, writer: asyncio.StreamWriter) -> None:
        if self.fault == "lose the message":
            return
        answers: dict[Fault | None, str] = {
            "limit": "429 Too Many Requests\r\nretry-after: 3",
            "refuse permanently": "422 Unprocessable",
            "dead": "410 Gone",
        }
        answer = answers.get(self.fault, "200 OK")
        if answer == "200 OK":
            self.shown.setdefault(message_id, said)
        if self.fault == "lose the receipt":
            return
        if self.reply is not None:
            with suppress(OSError):
                await self.reply(writer)
            return
        writer.write(f"HTTP/1.1 {answer}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".encode())
        await writer.drain()


class WebhookService:
    """The service for the contract tests: a program that sends messages and one that receives answers."""

    def __init__(self) -> None:
        self.address = Address(platform="webhook", chat_id="room")
        self.receiver = Receiver()
        self._numbers = count(1)
        self._said: asyncio.Queue[tuple[str, bytes]] = asyncio.Queue()
        self._adapter: WebhookAdapter | None = None
        self._posting: asyncio.Task[httpx2.Response] | None = None

    def connect(self) -> Adapter:
        self._adapter = WebhookAdapter(endpoint(callback=self.receiver.url))
        return self._adapter

    async def say(self, text: str) -> None:
        self._say(json.dumps({"chat": "room", "user": "ana", "text": text}).encode())

    async def send_malformed(self) -> None:
        self._say(b'{"chat":"room"')

    def shown(self) -> Sequence[str]:
        return [said["text"] for said in self.receiver.shown.values()]

    def menu(self) -> Sequence[str]:
        return []

    async def cut(self) -> None:
        if self._posting is not None:
            self._posting.cancel()

    async def inject(self, fault: Fault | None) -> None:
        self.receiver.fault = fault
        await (self.receiver.stop() if fault == "down" else self.receiver.start())

    async def deliver(self) -> None:
        """Send the messages in order, each until it is accepted or refused."""
        async with httpx2.AsyncClient(trust_env=False, timeout=60) as client:
            while True:
                message_id, body = await self._said.get()
                while not await self._was_taken(client, message_id, body):  # noqa: ASYNC110 - senders try again
                    await asyncio.sleep(0.01)

    def _say(self, body: bytes) -> None:
        self._said.put_nowait((f"msg_{next(self._numbers)}", body))

    async def _was_taken(self, client: httpx2.AsyncClient, message_id: str, body: bytes) -> bool:
        url = self._adapter.url if self._adapter else None
        if url is None:
            return False
        self._posting = asyncio.create_task(
            client.post(url, content=body, headers=signed(body, id=message_id))
        )
        await asyncio.wait([self._posting])
        if self._posting.cancelled() or isinstance(self._posting.exception(), httpx2.TransportError):
            return False
        return self._posting.result().status_code != 503


def endpoint(
    *, callback: str | None = None, port: int = 0, read: float = 30, store: float = 30, send: float = 30
) -> WebhookSettings:
    return WebhookSettings(
        secrets=(Secret.parse(SECRET),),
        port=port,
        callback=callback,
        read_seconds=read,
        store_seconds=store,
        send_seconds=send,
    )


class TestWebhook(AdapterContract):
    @pytest.fixture
    async def service(self) -> AsyncIterator[WebhookService]:
        service = WebhookService()
        await service.receiver.start()
        speaking = asyncio.create_task(service.deliver())
        yield service
        speaking.cancel()
        await asyncio.gather(speaking, return_exceptions=True)
        await service.receiver.close()


@pytest.fixture
async def client() -> AsyncIterator[httpx2.AsyncClient]:
    async with httpx2.AsyncClient(trust_env=False, timeout=60) as client:
        yield client


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    receiver = Receiver()
    await receiver.start()
    yield receiver
    await receiver.close()


@asynccontextmanager
async def listening(
    settings: WebhookSettings,
) -> AsyncIterator[tuple[WebhookAdapter, "asyncio.Queue[Update]", str]]:
    """Yield an adapter that listens, its updates and its URL. The test acknowledges the updates."""
    adapter = WebhookAdapter(settings)
    arrived: asyncio.Queue[Update] = asyncio.Queue()

    async def take_in() -> None:
        async for update in adapter.receive():
            arrived.put_nowait(update)

    taking = asyncio.create_task(take_in())
    await until(lambda: adapter.url is not None or taking.done())
    try:
        yield adapter, arrived, str(adapter.url)
    finally:
        taking.cancel()
        await asyncio.gather(taking, return_exceptions=True)
        await adapter.close()


async def raw(url: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    return await asyncio.open_connection("127.0.0.1", httpx2.URL(url).port)


async def answer_to(url: str, request: bytes) -> str:
    """Send raw bytes and return the whole answer."""
    reader, writer = await raw(url)
    writer.write(request)
    await writer.drain()
    answer = await reader.read()
    writer.close()
    await writer.wait_closed()
    return answer.decode()


async def test_a_message_is_accepted_only_after_its_acknowledgement(client: httpx2.AsyncClient) -> None:
    async with listening(endpoint()) as (adapter, arrived, url):
        posting = asyncio.create_task(client.post(url, content=HELLO, headers=signed(HELLO)))
        update = await arrived.get()
        await asyncio.wait([posting], timeout=0.1)
        assert not posting.done()
        await adapter.acknowledge(update)
        answer = await posting
    assert (answer.status_code, answer.json()) == (202, {"id": "msg_1"})
    assert texts([update]) == ["hello"]


async def test_a_malformed_message_is_refused_after_it_is_stored(client: httpx2.AsyncClient) -> None:
    async with listening(endpoint()) as (adapter, arrived, url):
        posting = asyncio.create_task(client.post(url, content=b"{", headers=signed(b"{")))
        update = await arrived.get()
        assert isinstance(update, Malformed)
        assert not posting.done()
        await adapter.acknowledge(update)
        answer = await posting
    assert answer.headers["content-type"] == "application/problem+json"
    problem = answer.json()
    assert problem.pop("detail").startswith("The body is not JSON")
    assert problem == {"type": "about:blank", "title": "Bad Request", "status": 400}


async def test_a_wrong_request_is_refused_with_a_sentence(client: httpx2.AsyncClient) -> None:
    large = b"x" * (BODY_BYTES_MAX + 1)

    async def in_chunks() -> AsyncIterator[bytes]:
        for _ in range(3):
            yield large[: BODY_BYTES_MAX // 2]

    async with listening(endpoint()) as (_, arrived, url):
        answers = [
            await client.get(url),
            await client.head(url),
            await client.post(f"{url}else", content=HELLO, headers=signed(HELLO)),
            await client.post(url, content=HELLO, headers=signed(HELLO, secret=OTHER)),
            await client.post(url, content=HELLO),
            await client.post(url, content=large, headers=signed(HELLO)),
            await client.post(url, content=in_chunks(), headers=signed(HELLO)),
        ]
        assert arrived.empty()
    assert [answer.status_code for answer in answers] == [405, 405, 404, 401, 415, 413, 413]
    assert answers[0].headers["allow"] == "POST"
    assert all(answer.json()["detail"].endswith(".") for answer in answers if answer.content)


async def test_data_that_is_not_http_is_refused() -> None:
    async with listening(endpoint()) as (_, _, url):
        assert (await answer_to(url, b"hello\r\n\r\n")).startswith("HTTP/1.1 400 ")
        long = b"POST / HTTP/1.1\r\nhost: x\r\nlong: " + b"x" * 100_000
        assert (await answer_to(url, long)).startswith("HTTP/1.1 431 ")


async def test_a_client_that_sends_everything_before_reading_gets_the_answer() -> None:
    head = b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 4000000\r\n\r\n"
    async with listening(endpoint()) as (_, _, url):
        assert (await answer_to(url, head + b"x" * 4_000_000)).startswith("HTTP/1.1 413 ")


async def test_an_endless_request_times_out() -> None:
    async with listening(endpoint(read=0.1)) as (_, _, url):
        assert (await answer_to(url, b"POST / HTTP/1.1\r\n")).startswith("HTTP/1.1 408 ")


@pytest.mark.parametrize("how", ["chunked", "expect"])
async def test_a_body_may_use_any_transfer_of_http(how: str) -> None:
    head = "".join(f"{name}: {value}\r\n" for name, value in signed(HELLO).items())
    if how == "chunked":
        head += "transfer-encoding: chunked\r\n"
        body = b"%x\r\n%s\r\n0\r\n\r\n" % (len(HELLO), HELLO)
    else:
        head += f"content-length: {len(HELLO)}\r\nexpect: 100-continue\r\n"
        body = HELLO
    async with listening(endpoint()) as (adapter, arrived, url):
        reader, writer = await raw(url)
        writer.write(f"POST /?from=test HTTP/1.1\r\nhost: x\r\n{head}\r\n".encode())
        if how == "expect":
            assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 100 ")
        writer.write(body)
        await adapter.acknowledge(await arrived.get())
        assert (await reader.readline()).startswith(b"HTTP/1.1 202 ")
        writer.close()
        await writer.wait_closed()


async def test_with_too_many_waiting_messages_senders_are_asked_to_retry(
    client: httpx2.AsyncClient,
) -> None:
    async with listening(endpoint()) as (adapter, arrived, url):
        waiting = [
            asyncio.create_task(client.post(url, content=HELLO, headers=signed(HELLO, id=f"msg_{number}")))
            for number in range(WAITING_MAX)
        ]
        updates = [await arrived.get() for _ in waiting]
        refused = await client.post(url, content=HELLO, headers=signed(HELLO, id="one-too-many"))
        assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
        assert arrived.empty()
        for update in updates:
            await adapter.acknowledge(update)
        assert {(await each).status_code for each in waiting} == {202}


async def test_with_too_many_connections_requests_are_refused() -> None:
    async with listening(endpoint()) as (_, _, url):
        opened = [await raw(url) for _ in range(CONNECTIONS_MAX + 1)]
        answer = await opened[-1][0].readline()
        assert answer.startswith(b"HTTP/1.1 503 ")
        for _, writer in opened:
            writer.close()
            await writer.wait_closed()


async def test_a_repeated_request_for_a_waiting_message_is_one_message(client: httpx2.AsyncClient) -> None:
    async with listening(endpoint(store=0.1)) as (adapter, arrived, url):
        first = await client.post(url, content=HELLO, headers=signed(HELLO))
        assert first.status_code == 503
        update = await arrived.get()
        again = await client.post(url, content=HELLO, headers=signed(HELLO))
        assert again.status_code == 503
        assert arrived.empty()
        other = asyncio.create_task(client.post(url, content=b"{}", headers=signed(b"{}")))
        assert isinstance(await arrived.get(), Malformed), "another body under the same id is not the same"
        await other
        await adapter.acknowledge(update)
        posting = asyncio.create_task(client.post(url, content=HELLO, headers=signed(HELLO)))
        await adapter.acknowledge(await arrived.get())
        await posting


async def test_waiting_senders_are_asked_to_retry_at_the_close(client: httpx2.AsyncClient) -> None:
    async with listening(endpoint()) as (adapter, arrived, url):
        posting = asyncio.create_task(client.post(url, content=HELLO, headers=signed(HELLO)))
        update = await arrived.get()
        reader, writer = await raw(url)
        writer.write(b"POST / HTTP/1.1\r\n")
        assert (await client.get(url)).status_code == 405, "who came before this one is connected"
    assert (await posting).status_code == 503
    assert not await reader.read(), "a request that is half there is cut off"
    writer.close()
    await writer.wait_closed()
    await adapter.acknowledge(update)
    assert adapter.url is None


async def test_clients_that_disconnect_do_no_harm(client: httpx2.AsyncClient) -> None:
    request = b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 10\r\n\r\nhalf"
    async with listening(endpoint()) as (adapter, arrived, url):
        for sent in (b"", request[:9], request):
            _, writer = await raw(url)
            writer.write(sent)
            writer.transport.abort()
        head = "".join(f"{name}: {value}\r\n" for name, value in signed(HELLO, id="gone").items())
        _, writer = await raw(url)
        writer.write(
            f"POST / HTTP/1.1\r\nhost: x\r\n{head}content-length: {len(HELLO)}\r\n\r\n".encode() + HELLO
        )
        update = await arrived.get()
        writer.transport.abort()
        await adapter.acknowledge(update)
        posting = asyncio.create_task(client.post(url, content=HELLO, headers=signed(HELLO)))
        await adapter.acknowledge(await arrived.get())
        assert (await posting).status_code == 202


async def test_a_taken_port_is_not_connected() -> None:
    async with listening(endpoint()) as (_, _, url):
        other = WebhookAdapter(endpoint(port=httpx2.URL(url).port or 0))
        with pytest.raises(NotConnected, match=r"platforms\.webhook\.port \d+ is taken .*address in use"):
            await anext(other.receive())
        await other.close()


async def test_a_foreign_host_is_reported_with_its_setting() -> None:
    for host, reason in (("192.0.2.1", "Cannot assign"), ("no-such-host.invalid", "no such host")):
        adapter = WebhookAdapter(replace(endpoint(), host=host))
        with pytest.raises(NotConnected, match=rf"platforms\.webhook\.host {host}: {reason}"):
            await adapter.connect()


async def test_a_second_receive_replaces_the_first() -> None:
    adapter = WebhookAdapter(endpoint())
    first = asyncio.ensure_future(anext(adapter.receive()))
    await until(lambda: adapter.url is not None)
    before = adapter.url
    second = asyncio.ensure_future(anext(adapter.receive()))
    await until(lambda: adapter.url not in (None, before))
    with pytest.raises(OSError, match=r"refused|Connect call failed"):
        await raw(str(before))
    for task in (first, second):
        task.cancel()
    await asyncio.gather(first, second, return_exceptions=True)
    await adapter.close()


# ------------------------------------------------------------------------------------------- callbacks


async def send(callback: str | None, *, seconds: float = 30) -> Outcome:
    adapter = WebhookAdapter(endpoint(callback=callback, send=seconds))
    try:
        return await adapter.send(outgoing())
    finally:
        await adapter.close()


async def test_a_callback_that_does_not_answer_is_unknown(receiver: Receiver) -> None:
    async def never(writer: asyncio.StreamWriter) -> None:
        await asyncio.Event().wait()

    receiver.reply = never
    assert await send(receiver.url, seconds=0.2) == Unknown()


async def test_a_callback_that_answers_too_slowly_times_out(receiver: Receiver) -> None:
    async def drip(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nlong: ")
        while True:
            writer.write(b"x")
            await writer.drain()
            await asyncio.sleep(0.02)

    receiver.reply = drip
    assert await send(receiver.url, seconds=0.5) == Unknown()


@pytest.mark.parametrize("length", [10, 10 * ANSWER_BYTES_MAX])
async def test_a_receipt_counts_even_if_the_connection_then_fails(receiver: Receiver, length: int) -> None:
    async def half(writer: asyncio.StreamWriter) -> None:
        writer.write(f"HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n".encode() + b"x" * (length // 2))
        await writer.drain()

    receiver.reply = half
    assert await send(receiver.url) == Sent(message_id="k-0")


@pytest.mark.parametrize(
    ("callback", "words", "permanent"),
    [(None, "platforms.webhook.callback", True), ("http://[", "cannot be reached", False)],
)
async def test_a_callback_that_cannot_be_called_is_rejected_with_the_reason(
    callback: str | None, words: str, *, permanent: bool
) -> None:
    outcome = await send(callback)
    assert isinstance(outcome, Rejected)
    assert words in outcome.reason
    assert outcome.permanent == permanent


SENDS = """
import asyncio, sys
from keryx.cli.log import configure_logging
from keryx.core.deliveries.rules.route import Address
from keryx.core.deliveries.rules.pieces import TextPiece
from keryx.platforms.adapter import Outgoing
from keryx.platforms.webhook.adapter import Secret, WebhookAdapter, WebhookSettings

async def send():
    adapter = WebhookAdapter(WebhookSettings(secrets=(Secret.parse(sys.argv[1]),), callback=sys.argv[2]))
    to = Address(platform="webhook", chat_id="room")
    print(await adapter.send(Outgoing(to=to, piece=TextPiece(text="hello"), key="k-0")))
    await adapter.close()

configure_logging("debug", "text")
asyncio.run(send())
"""


async def test_a_secret_in_the_callback_reaches_no_log(receiver: Receiver) -> None:
    # In its own process, because the log belongs to the whole process.
    sending = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", SENDS, SECRET, f"{receiver.url}?token=canary"),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    told, logged = await sending.communicate()
    assert told.decode() == "Sent(message_id='k-0')\n"
    assert b"canary" not in logged
    assert b"asyncio" in logged, "the log is written"


def test_settings_that_cannot_work_are_refused() -> None:
    with pytest.raises(InvalidValue, match="needs a secret"):
        WebhookSettings(secrets=())
    with pytest.raises(InvalidValue, match="begins with https"):
        endpoint(callback="example.org")


@asynccontextmanager
async def gateway_at(
    path: Path, receiver: Receiver, settings: Settings
) -> AsyncIterator[tuple[Database, WebhookAdapter]]:
    """Run a gateway on the webhook platform, with a store that knows no user."""
    database = open_database(str(path / "keryx.db"))
    adapter = WebhookAdapter(endpoint(callback=receiver.url))
    runtime = Runtime(
        database=database,
        settings=settings,
        ids=Ids(),
        clock=SystemClock(),
        holder="node-1",
        platforms=frozenset({"webhook"}),
    )
    gateway = Gateway(runtime, Actor(), Toolbox([]), [adapter])
    await gateway.start()
    try:
        await until(lambda: adapter.url is not None)
        yield database, adapter
    finally:
        await gateway.stop(seconds=1)
        await database.close()


async def test_a_program_is_answered_at_its_callback_once(
    tmp_path: Path, client: httpx2.AsyncClient, receiver: Receiver
) -> None:
    async with gateway_at(tmp_path, receiver, Settings()) as (database, adapter):
        await let_in(database, FakePlatform(name="webhook"), "ana")
        for _ in range(2):
            answer = await client.post(str(adapter.url), content=HELLO, headers=signed(HELLO))
            assert answer.status_code == 202
        garbled = await client.post(str(adapter.url), content=b"{", headers=signed(b"{", id="msg_2"))
        assert garbled.status_code == 400
        await until(lambda: bool(receiver.shown))
    assert [said["text"] for said in receiver.shown.values()] == ["You said: hello"]


async def test_a_message_of_a_user_without_access_is_refused(
    tmp_path: Path, client: httpx2.AsyncClient, receiver: Receiver
) -> None:
    async with gateway_at(tmp_path, receiver, Settings()) as (_, adapter):
        for _ in range(2):
            answer = await client.post(str(adapter.url), content=HELLO, headers=signed(HELLO))
            assert (answer.status_code, answer.json()["code"]) == (403, "sender_refused")
            assert "/link" in answer.json()["detail"]
    assert not receiver.shown


async def test_a_refused_message_is_accepted_after_its_author_gets_access(
    tmp_path: Path, client: httpx2.AsyncClient, receiver: Receiver
) -> None:
    pairing = Settings(pairing_platforms=frozenset({"webhook"}))
    async with gateway_at(tmp_path, receiver, pairing) as (database, adapter):
        refused = await client.post(str(adapter.url), content=HELLO, headers=signed(HELLO))
        assert (refused.status_code, refused.json()["code"]) == (403, "pairing_required")
        await until(lambda: len(receiver.shown) == 1)
        await database.write(lambda tx: approve_pairing(tx, 1, by=people.ensure_owner(tx).id))
        taken = await client.post(str(adapter.url), content=HELLO, headers=signed(HELLO))
        assert taken.status_code == 202
        await until(lambda: "You said: hello" in [said["text"] for said in receiver.shown.values()])
    assert "Your code is " in next(iter(receiver.shown.values()))["text"]
