"""The explorer's pages, in the order of the navigation; a script in ``assets`` fills the frame of each."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Page:
    """A page: its word in the navigation, which in small letters is its script's name, and its address."""

    name: str
    path: str

    @property
    def title(self) -> str:
        """What a tab of the browser says."""
        return (
            "tokentrip: follow one token through a GPU mesh"
            if self.path == "/"
            else f"{self.name} · tokentrip"
        )


PAGES = (
    Page("Trip", "/"),
    Page("Numbers", "/numbers"),
    Page("Mesh", "/mesh"),
    Page("Traffic", "/traffic"),
    Page("Batch", "/batch"),
    Page("Time", "/time"),
    Page("Roofline", "/roofline"),
    Page("Decode", "/decode"),
    Page("Compare", "/compare"),
    Page("Learn", "/learn"),
)


def title_of(path: str) -> str:
    """The title of what stands at a path."""
    return next((page.title for page in PAGES if page.path == path), "No such page · tokentrip")
