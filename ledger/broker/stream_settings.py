"""What the settings of a stream have to be, so that it keeps all that it is given and takes all that it should."""

from __future__ import annotations

from kledger.contract.errors import BrokerMisconfigured
from ledger.event import JsonObject

_SMALLEST_MESSAGE = 1024 * 1024
_UNLIMITED: JsonObject = {
    "max_msgs": -1,
    "max_bytes": -1,
    "max_age": 0,
    "max_msgs_per_subject": -1,
    "max_consumers": -1,
}
"""What holds of every stream of which nothing else is wanted."""
_NEVER = (
    "allow_msg_ttl",  # a header of a publisher has its message removed
    "allow_msg_schedules",  # another one has it removed and published again
    "allow_msg_counter",  # a message is a number that is added up
    "no_ack",
    "sealed",
    "mirror",
    "sources",
    "subject_transform",
    "consumer_limits",  # a reader that asks for more is refused
)
"""What no stream of the ledger may have: settings by which it loses, changes or refuses what it is given."""
# These may be otherwise; `max_msg_size` has a least value below, and `duplicate_window` where it is the log's.
_FREE = ("name", "description", "num_replicas", "duplicate_window", "discard", "metadata", "max_msg_size")
_DEFAULTS = (-1, 0, False)
"""What a server leaves out of the settings that it tells."""


def wrong_settings(config: JsonObject, wanted: JsonObject) -> list[str]:
    """Each setting of a stream that is not as it is wanted, with what it must be; none of a stream that will do."""
    wrong = [
        f"{setting} is {config.get(setting)!r} and must be {value!r}"
        for setting, value in {**_UNLIMITED, **wanted}.items()
        if setting not in _FREE and config.get(setting, value if value in _DEFAULTS else None) != value
    ]
    wrong += [f"{setting} is {config[setting]!r} and must not be set" for setting in _NEVER if config.get(setting)]
    # A persistence mode other than the default acknowledges events before they are on disk.
    if config.get("persist_mode") not in (None, "", "default"):
        wrong.append(f"persist_mode is {config['persist_mode']!r} and must be the default")
    if config.get("first_seq", 0) > 1:
        wrong.append(f"first_seq is {config['first_seq']} and must be 1: the stream has to be made anew")
    if config.get("max_msg_size", -1) not in (-1, 0) and config["max_msg_size"] < _SMALLEST_MESSAGE:
        wrong.append(f"max_msg_size is {config['max_msg_size']} and must be at least {_SMALLEST_MESSAGE}")
    return wrong


def refuse(config: JsonObject, wrong: list[str], what: str) -> None:
    """Raise BrokerMisconfigured where a stream, which `what` is to be, has settings that are wrong."""
    if wrong:
        raise BrokerMisconfigured(
            f"the stream {config['name']} is not one that {what}: {'; '.join(wrong)}. "
            "Mend these settings, or give the ledger a broker account of its own"
        )
