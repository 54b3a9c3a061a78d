"""Checked access to the keys of a Hugging Face config.json.

Read by hand and not with transformers: that fills a missing key with the default of a class, where a size
that nobody stated must be named; and it would bring large packages into an engine of the standard library.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from tracer.errors import MAX_SIZE, ConfigError, check_bool, check_table, finite_number, nearest, whole_number

T = TypeVar("T")


class ConfigKeys:
    """One table of a config: every read is checked, and an error names the key with its path.

    ``path`` is ``config``, or ``config.text_config`` where the model's table is nested.
    ``warnings`` collects what a reader of the spec should know; each text stands once. ``known`` keeps
    what a reader worked out once for all layers.
    """

    __slots__ = ("known", "path", "table", "warnings")

    def __init__(self, table: object, path: str = "config", warnings: list[str] | None = None) -> None:
        self.table = check_table(path, table)
        self.path = path
        self.warnings: list[str] = [] if warnings is None else warnings
        self.known: dict[str, Any] = {}

    def field(self, key: str) -> str:
        """The name an error gives to ``key``."""
        return f"{self.path}.{key}"

    def has(self, key: str) -> bool:
        """Whether ``key`` is there and not null."""
        return self.table.get(key) is not None

    def nested(self, key: str) -> ConfigKeys:
        """The table under ``key``; it shares this one's warnings."""
        return ConfigKeys(self._required(key), self.field(key), self.warnings)

    def size(self, key: str, low: int = 1, high: int = MAX_SIZE) -> int:
        """A required whole number from ``low`` to ``high``."""
        return whole_number(self.field(key), self._required(key), at_least=low, at_most=high)

    def first(self, *keys: str) -> str:
        """The first of several names of one size that is there; the first name where none is."""
        return next((key for key in keys if self.has(key)), keys[0])

    def once(self, name: str, make: Callable[[], T]) -> T:
        """What ``make`` returns, worked out at the first call for ``name``."""
        if name not in self.known:
            self.known[name] = make()
        found: T = self.known[name]
        return found

    def switch(self, key: str, default: bool = False) -> bool:
        """A true or false, or ``default`` where the key is absent or null."""
        return self.flag(key) if self.has(key) else default

    def whole(self, key: str, default: int = 0) -> int:
        """A whole number from 0, or ``default`` where the key is absent or null."""
        return self.size(key, low=0) if self.has(key) else default

    def per_layer(self, key: str, layers: int) -> tuple[object, ...]:
        """A list with at least one entry for each layer (those of prediction layers may follow)."""
        value = self._required(key)
        if not isinstance(value, list | tuple) or not layers <= len(value) <= layers + 16:
            got = f"{len(value)} entries" if isinstance(value, list | tuple) else value
            rule = f"must have one entry for each of num_hidden_layers={layers}"
            raise ConfigError(self.field(key), got, rule, "add or remove entries")
        return tuple(value)

    def optional_size(self, key: str) -> int | None:
        """A whole number from 1, or None when the key is absent or null."""
        return self.size(key) if self.has(key) else None

    def nullable_size(self, key: str) -> int | None:
        """A whole number from 1, or None when the key is there and null; an absent key is refused."""
        if key in self.table and self.table[key] is None:
            return None
        return self.size(key)

    def number(self, key: str) -> float:
        """A required finite number above 0."""
        return finite_number(self.field(key), self._required(key), at_most=MAX_SIZE)

    def flag(self, key: str) -> bool:
        """A required true or false."""
        return check_bool(self.field(key), self._required(key))

    def word(self, key: str, meanings: dict[str, T]) -> T:
        """What a required text stands for; a text without a meaning is refused, never guessed."""
        value = self._required(key)
        if not isinstance(value, str):
            raise ConfigError(self.field(key), value, "must be a text", f"try {next(iter(meanings))!r}")
        if value not in meanings:
            rule = f"is not one this reader knows ({', '.join(meanings)})"
            raise ConfigError(self.field(key), value, rule, nearest(value, list(meanings)))
        return meanings[value]

    def words(self, key: str) -> tuple[str, ...]:
        """A list of texts, empty when the key is absent or null."""
        value = self.table.get(key)
        if value is None:
            return ()
        if not isinstance(value, list | tuple) or not all(isinstance(each, str) for each in value):
            raise ConfigError(self.field(key), value, "must be a list of texts", "write ['...']")
        return tuple(value)

    def indices(self, key: str, end: int) -> frozenset[int]:
        """A list of 0-based numbers below ``end``, empty when the key is absent or null."""
        value = self.table.get(key)
        if value is None:
            return frozenset()
        if not isinstance(value, list | tuple):
            raise ConfigError(self.field(key), value, "must be a list of 0-based layer numbers", "write []")
        return frozenset(whole_number(self.field(key), each, at_least=0, at_most=end - 1) for each in value)

    def defaults(self, values: dict[str, object]) -> ConfigKeys:
        """The same table with a class default for each key that is absent or null, and a warning for each."""
        taken = {key: value for key, value in values.items() if not self.has(key)}
        for key, value in taken.items():
            self.warn(f"{self.field(key)} is absent: takes the model class's default, {value!r}")
        return ConfigKeys(self.table | taken, self.path, self.warnings)

    def warn(self, text: str) -> None:
        """Note ``text`` once."""
        if text not in self.warnings:
            self.warnings.append(text)

    def _required(self, key: str) -> object:
        """The value under ``key``; absent and null are refused."""
        if not self.has(key):
            fix = f"take {key} from the config.json that ships with the model"
            raise ConfigError(self.field(key), None, "is needed to read this config", fix)
        return self.table[key]
