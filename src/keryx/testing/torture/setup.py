"""Set up the store, the gateways and the platform for one torture run, and clean up after it."""

import asyncio
import base64
import random
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from keryx.core.upkeep.views.nodes import show_nodes
from keryx.errors import StoreUnavailable
from keryx.ids import Ids
from keryx.platforms.webhook.wire import PLATFORM, Secret
from keryx.store.database import Database, ReadTx, T
from keryx.store.opening import open_database
from keryx.testing.postgres import PrivateServer
from keryx.testing.torture.double import PlatformDouble
from keryx.testing.torture.effects import EffectLog
from keryx.testing.torture.fleet import Node, NodeSettings, free_port
from keryx.testing.torture.load import Chat, Load, let_in, make_chats
from keryx.testing.torture.options import Options
from keryx.testing.torture.records import PlatformRecords
from keryx.values import dataclass

AWAY_SECONDS = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class TortureSetup:
    """All objects of one run."""

    database: Database
    server: PrivateServer | None
    double: PlatformDouble
    effect_log: EffectLog
    nodes: list[Node]
    chats: list[Chat]
    load: Load

    @property
    def records(self) -> PlatformRecords:
        """The platform's records."""
        return self.double.records

    async def read(self, work: Callable[[ReadTx], T]) -> T:
        """Read from the store, as soon as it is available."""
        while True:
            try:
                return await self.database.read(work)
            except StoreUnavailable:
                await asyncio.sleep(AWAY_SECONDS)

    async def account_holder(self) -> str | None:
        """Return the holder of the account's connector lease."""
        shown = await self.read(show_nodes)
        return next((held.holder for held in shown.accounts if held.platform == PLATFORM), None)


@asynccontextmanager
async def set_up(options: Options, folder: Path) -> AsyncIterator[TortureSetup]:
    """Set up a run without starting the gateways; no gateway is left running after the block."""
    rng = random.Random(f"{options.seed}/setup")
    ids = Ids()
    secret = "whsec_" + base64.b64encode(bytes.fromhex(ids.token() + ids.token())).decode("ascii")
    chats = make_chats(options.chats, ids=ids)
    async with AsyncExitStack() as stack:
        server = None
        address = options.database or str(folder / "keryx.db")
        if options.postgres and options.database is None:
            # Durable as a real server: a reported commit must survive the restart.
            server = PrivateServer(durable=True)
            await asyncio.to_thread(server.__enter__)
            stack.push_async_callback(asyncio.to_thread, server.__exit__, None, None, None)
            address = await asyncio.to_thread(server.create_database)
        database = await asyncio.to_thread(open_database, address)
        stack.push_async_callback(database.close)
        users = {user for chat in chats for user in chat.users}
        await database.write(lambda tx: let_in(tx, users, ids=ids))
        double = await stack.enter_async_context(
            PlatformDouble(
                PlatformRecords(), secret=Secret.parse(secret), rng=random.Random(f"{options.seed}/rates")
            )
        )
        settings = NodeSettings(
            folder=folder, database=address, secret=secret, effect_log=folder / "effects.jsonl"
        )
        nodes = []
        for no in range(1, options.gateways + 1):
            name = f"n{no}"
            node = Node(name, port=free_port(rng), callback=double.callback(name), settings=settings)
            double.gateways[name] = node.url
            stack.push_async_callback(node.kill)
            nodes.append(node)
        load = Load(double, chats, seed=options.seed)
        stack.push_async_callback(load.abort)
        yield TortureSetup(
            database=database,
            server=server,
            double=double,
            effect_log=EffectLog(settings.effect_log),
            nodes=nodes,
            chats=chats,
            load=load,
        )
