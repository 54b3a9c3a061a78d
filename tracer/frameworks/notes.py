"""What a layout says besides its groups: warnings with a fix, and refusals in the framework's words."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Note:
    """A warning about a layout: a short code, what is so, and what to do about it."""

    code: str
    message: str
    fix: str

    def to_dict(self) -> dict[str, str]:
        """JSON values."""
        return {"code": self.code, "message": self.message, "fix": self.fix}

    def __str__(self) -> str:
        return f"[{self.code}] {self.message}; {self.fix}"


class Refusal(Exception):
    """The framework refuses these settings.

    ``dest`` is the setting to blame, ``rule`` the framework's own message, ``mend`` the settings to try
    other values of (``"gpus"`` is the number of GPUs). Whoever catches it looks for a value that works
    and says ``otherwise`` where there is none.
    """

    def __init__(self, dest: str, rule: str, *, mend: tuple[str, ...] = (), otherwise: str = "") -> None:
        self.dest = dest
        self.rule = rule
        self.mend = mend or (dest,)
        self.otherwise = otherwise or "change the sizes or the number of GPUs"
        super().__init__(rule)
