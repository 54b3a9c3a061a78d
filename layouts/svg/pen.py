"""A pen: the few SVG shapes the pictures are made of, in the colours of a theme.

Every colour is a presentation attribute plus, where a theme can change, a class (``f-ink`` fills with
ink, ``s-ink`` strokes): readers without CSS see the light colours, a page restyles the classes.

A pen for pictures of many shapes: colours stand once in a style sheet, not on every shape.
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

from layouts.scene.palette import DARK, LIGHT
from tracer.mesh.cluster import Tier


@dataclass(frozen=True, slots=True)
class Pen:
    """Colours by name, and whether shapes carry classes and a style sheet of their own."""

    colours: dict[str, str]
    classes: bool
    own_style: bool

    @classmethod
    def of(cls, theme: str) -> Pen:
        """The pen of a theme: ``light``, ``dark``, ``auto`` or ``page``.

        Raises:
            ValueError: for another word.
        """
        if theme not in ("light", "dark", "auto", "page"):
            raise ValueError(f"theme={theme!r} must be one of auto, light, dark, page")
        return cls(DARK if theme == "dark" else LIGHT, theme in ("auto", "page"), theme == "auto")

    def style_sheet(self) -> str:
        """Dark colours where the reader's system is dark; empty for a fixed theme."""
        if not self.own_style:
            return ""
        rules = "".join(f".f-{n}{{fill:{c}}}.s-{n}{{stroke:{c}}}" for n, c in DARK.items())
        return f"<style>@media (prefers-color-scheme:dark){{{rules}}}</style>"

    def fill(self, name: str) -> str:
        """Attributes that fill with a colour."""
        return f'fill="{self.colours[name]}"' + (f' class="f-{name}"' if self.classes else "")

    def stroke(self, name: str) -> str:
        """Attributes that stroke with a colour; a shape that also fills merges the classes."""
        return f'stroke="{self.colours[name]}"' + (f' class="s-{name}"' if self.classes else "")

    def both(self, fill: str, stroke: str) -> str:
        """Attributes that fill and stroke."""
        found = f'fill="{self.colours[fill]}" stroke="{self.colours[stroke]}"'
        return found + (f' class="f-{fill} s-{stroke}"' if self.classes else "")

    def line(self, path: str, name: str, width: float, extra: str = "") -> str:
        """An open path."""
        return f'<path d="{path}" fill="none" {self.stroke(name)} stroke-width="{width:g}"{extra}/>'

    def text(
        self,
        x: float,
        y: float,
        words: str,
        name: str,
        size: float,
        *,
        weight: int = 400,
        anchor: str = "",
        raw: bool = False,
    ) -> str:
        """One line of text; ``raw`` words are markup already."""
        shown = words if raw else escape(words)
        heavy = f' font-weight="{weight}"' if weight != 400 else ""
        middle = f' text-anchor="{anchor}"' if anchor else ""
        return (
            f'<text x="{x:g}" y="{y:g}" font-size="{size:g}"{heavy}{middle} {self.fill(name)}>{shown}</text>'
        )

    def swatch(self, kind: str, x: float, y: float) -> str:
        """A legend's sample, about 26 wide."""
        if kind == "dot":
            return f'<circle cx="{x + 18:g}" cy="{y:g}" r="7" {self.fill("token")}/>'
        if kind == "kv":
            return f'<rect x="{x + 12:g}" y="{y - 6:g}" width="12" height="12" rx="2" {self.fill("kv")}/>'
        dash = ' stroke-dasharray="8 3"' if kind == Tier.IB else ""
        return self.line(f"M{x:g} {y:g}h26", kind, 3, dash)


@dataclass(frozen=True, slots=True)
class StyleSheetPen(Pen):
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
