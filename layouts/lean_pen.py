"""A pen for pictures of many shapes: colours stand once in a style sheet, not on every shape."""

from __future__ import annotations

from dataclasses import dataclass

from layouts.draw import Pen
from layouts.palette import DARK, LIGHT


@dataclass(frozen=True, slots=True)
class LeanPen(Pen):
    """Colours by class, from a style sheet of its own or of the page around it; readers need CSS."""

    @classmethod
    def for_theme(cls, theme: str) -> Pen:
        """A lean pen for ``auto`` and ``page``; the plain one for a fixed theme, which needs no classes.

        Raises:
            ValueError: for an unknown theme.
        """
        plain = Pen.of(theme)
        return cls(plain.colours, True, plain.own_style) if plain.classes else plain

    def style_sheet(self) -> str:
        """Both colour schemes, and what an untouched GPU looks like; a page brings its own."""
        if not self.own_style:
            return ""
        return f"<style>{_rules(LIGHT)}@media (prefers-color-scheme:dark){{{_rules(DARK)}}}</style>"

    def fill(self, name: str) -> str:
        """A class that fills with a colour."""
        return f'class="f-{name}"'

    def stroke(self, name: str) -> str:
        """A class that strokes with a colour."""
        return f'class="s-{name}"'

    def both(self, fill: str, stroke: str) -> str:
        """Classes that fill and stroke."""
        return f'class="f-{fill} s-{stroke}"'


def _rules(colours: dict[str, str]) -> str:
    plain = "".join(f".f-{name}{{fill:{c}}}.s-{name}{{stroke:{c}}}" for name, c in colours.items())
    return plain + untouched_rules(colours)


def untouched_rules(colours: dict[str, str]) -> str:
    """How a GPU of class ``off`` looks, though it is drawn as one that the token touched."""
    return (
        f".off rect{{stroke:{colours['edge']};stroke-width:1}}"
        f".off text{{fill:{colours['soft']};font-weight:400}}"
    )
