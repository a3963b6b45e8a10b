"""The object-store queue, Sans-I/O: `Producer` in the gateway, `Inbox` at the replica, `Item`s between."""

from actors.queue.consumer import Held, Inbox, Key
from actors.queue.items import Control, Delivery, Item, ItemResult, Reference, Returns
from actors.queue.outbox import Outcome, Outgoing, QueueOptions, Say
from actors.queue.pace import Figures, Spread
from actors.queue.producer import Producer

__all__ = [
    "Control",
    "Delivery",
    "Figures",
    "Held",
    "Inbox",
    "Item",
    "ItemResult",
    "Key",
    "Outcome",
    "Outgoing",
    "Producer",
    "QueueOptions",
    "Reference",
    "Returns",
    "Say",
    "Spread",
]
