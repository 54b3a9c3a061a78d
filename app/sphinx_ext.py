"""A Sphinx directive that puts a trip into a page: a picture, the log, a table, or the counts.

``extensions = ["tokentrip"]`` in ``conf.py``; then, in MyST or reStructuredText::

    ```{token-trip} six-cuts
    :show: picture
    :hop: 4
    :alt: The token is dispatched to two experts, one through a relay
    ```

The argument is a preset or a scenario file beside the page. ``show`` is ``picture`` (the default),
``animation``, ``log``, ``table`` or ``counts``; ``tokens`` (``0,5,3:40``) puts several on one map. A role
puts one figure into a sentence: ``{token-fact}`six-cuts home` ``; its names are those of
``tracer.trip.facts``. ``token-model`` draws what a model is made of: one that ships, or a config.json beside
the page. Everything is made when the site is built.

Where ``conf.py`` says in ``tokentrip_site`` where a folder of ``tokentrip site`` lies, ``:live:`` lets the
reader change the trip of a picture, and ``token-explorer`` shows the whole explorer.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, cast

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.util.docutils import SphinxDirective, SphinxRole

from app.query.trips import ONE_TOKEN, as_asked, follow, one_trip
from tracer.errors import ConfigError
from tracer.scenario.files import SUFFIXES, load_scenario
from tracer.trip.facts import trip_fact
from tracer.trip.log import totals_line
from tracer.trip.trip import take_trip

if TYPE_CHECKING:
    from collections.abc import Callable

    from sphinx.application import Sphinx
    from sphinx.environment import BuildEnvironment

    from tracer.model.configs import ReadModel
    from tracer.scenario.scenario import Scenario
    from tracer.trip.trip import Trip
    from tracer.trip.trips import Trips

SHOWN = ("picture", "animation", "log", "table", "counts")
PICTURES = {"picture": ".svg", "animation": ".anim.svg"}


def _shown(argument: str) -> str:
    return str(directives.choice(argument, SHOWN))


class TokenTrip(SphinxDirective):
    """``token-trip SCENARIO``; options: ``show``, ``hop``, ``tokens``, ``live``, ``alt``, ``caption``."""

    required_arguments = 1
    final_argument_whitespace = True
    option_spec: ClassVar[dict[str, Callable[[str], Any]] | None] = {
        "show": _shown,
        "hop": directives.nonnegative_int,
        "tokens": directives.unchanged_required,
        "live": directives.flag,
        "alt": directives.unchanged_required,
        "caption": directives.unchanged_required,
    }

    def run(self) -> list[nodes.Node]:
        """What the page shows; wrong input is an error at the directive's own line."""
        show = self.options.get("show", "picture")
        try:
            trips = self._trips()
            hop = self._hop(trips, show)
            if "live" in self.options:
                return self._live(trips, show, hop)
            if show in PICTURES:
                return self._picture(trips, show, hop)
            if show == "table":
                return [_table(one_trip(trips, "tokens", "table", ONE_TOKEN), hop)]
        except ConfigError as error:
            raise self.error(f"token-trip: {error}") from error
        if show == "log":
            log = str(as_asked(trips))
            return [nodes.literal_block(log, log, language="text")]
        counts = totals_line(trips)
        return [nodes.paragraph(counts, counts)]

    def _trips(self) -> Trips:
        scenario = _scenario(self.arguments[0].strip(), self.env)
        return follow(scenario, self.options.get("tokens"), "tokens")

    def _hop(self, trips: Trips, show: str) -> int | None:
        hop: int | None = self.options.get("hop")
        last = len(trips.steps) - 1
        if hop is not None and hop > last:
            raise ConfigError("hop", hop, f"must be from 0 to {last}", "try 0, the landing")
        if hop is not None and show in ("log", "counts"):
            raise ConfigError("hop", hop, f"has no place in a {show}", "leave :hop: out, or show a picture")
        return hop

    def _picture(self, trips: Trips, show: str, hop: int | None) -> list[nodes.Node]:
        """The picture as a file of the built site; its text lives in the page's alt text."""
        picture: nodes.Node = self._image(trips, PICTURES[show], hop)
        if show == "animation":
            picture = MovingPicture("", self._image(trips, PICTURES["picture"], hop), picture)
        return _with_caption(self, picture)

    def _live(self, trips: Trips, show: str, hop: int | None) -> list[nodes.Node]:
        """The picture, and the explorer in its place when the reader asks for it."""
        from urllib.parse import urlencode

        from app.query.address import flatten

        if show != "picture":
            raise ConfigError("live", show, "needs a picture to stand in for", "leave :show: out")
        source, scenario = self.arguments[0].strip(), trips.scenario
        is_file = Path(source).suffix.lower() in SUFFIXES
        query = {"scenario": "", **flatten(scenario.to_dict())} if is_file else {"scenario": source}
        query |= {"follow": self.options["tokens"]} if "tokens" in self.options else {}
        query |= {} if hop is None else {"hop": str(hop)}
        site = _site(self.env)
        live = LiveTrip("", self._image(trips, PICTURES[show], hop), site=site, query=urlencode(query))
        return _with_caption(self, live)

    def _image(self, trips: Trips, ending: str, hop: int | None) -> nodes.image:
        from app.exports.formats import FORMATS

        text = str(FORMATS[ending](trips, hop))
        return _image_of(self, trips.scenario.name or "trip", text, _alt(trips, hop))


class TokenExplorer(SphinxDirective):
    """``token-explorer``: the explorer itself, from the folder that ``tokentrip_site`` names."""

    def run(self) -> list[nodes.Node]:
        """A frame in HTML, and nothing on paper."""
        try:
            return [Explorer("", site=_site(self.env))]
        except ConfigError as error:
            raise self.error(f"token-explorer: {error}") from error


def _site(env: BuildEnvironment) -> str:
    """Where the folder of the explorer lies, with a slash at its end.

    Raises:
        ConfigError: when conf.py does not say.
    """
    site = str(env.config.tokentrip_site or "")
    if not site:
        fix = 'write it in conf.py: tokentrip_site = "site/"'
        raise ConfigError("tokentrip_site", None, "is needed for what is live", fix)
    return site.rstrip("/") + "/"


class TokenModel(SphinxDirective):
    """``token-model NAME|config.json`` with the options ``alt`` and ``caption``: the strip of its layers."""

    required_arguments = 1
    final_argument_whitespace = True
    option_spec: ClassVar[dict[str, Callable[[str], Any]] | None] = {
        "alt": directives.unchanged_required,
        "caption": directives.unchanged_required,
    }

    def run(self) -> list[nodes.Node]:
        """The picture; wrong input is an error at the directive's own line."""
        from layouts.pictures.model_svg import model_svg
        from tracer.memory.anatomy import anatomy

        try:
            read = _model(self.arguments[0].strip(), self.env)
            found = anatomy(read.spec, read.warnings)
        except ConfigError as error:
            raise self.error(f"token-model: {error}") from error
        name = read.spec.name or "model"
        kinds = "; ".join(f"{len(layers)} of {kind.title}" for kind, layers in read.spec.kinds())
        alt = f"Layers of {name}: {kinds}. {found.count.total:,} parameters."
        return _with_caption(self, _image_of(self, name, model_svg(found), alt))


def _image_of(directive: SphinxDirective, name: str, text: str, alt: str) -> nodes.image:
    """A picture as a file of the built site; its text lives in the page's alt text."""
    from hashlib import sha256

    from app.exports.files import write_whole

    env = directive.env
    plain = "".join(each if each.isalnum() or each in "-._" else "-" for each in name)
    file = f"{plain}-{sha256(text.encode()).hexdigest()[:12]}.svg"
    folder = Path(env.doctreedir) / "token-trips"
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(folder / file, text)
    image = nodes.image(uri=_from_source(folder / file, Path(env.doc2path(env.docname))))
    image["alt"] = directive.options.get("alt") or alt
    directive.set_source_info(image)
    return image


def _with_caption(directive: SphinxDirective, picture: nodes.Node) -> list[nodes.Node]:
    """The picture alone, or as a figure with the caption that was asked."""
    caption = directive.options.get("caption")
    if caption is None:
        return [picture]
    words, messages = directive.state.inline_text(caption, directive.lineno)
    return [nodes.figure("", picture, nodes.caption(caption, "", *words)), *messages]


class MovingPicture(nodes.General, nodes.Element):
    """A still image and a moving one; readers who want no motion get the first."""


def _show_moving(writer: Any, node: MovingPicture) -> None:
    """HTML has both images, and the reader's system chooses one."""
    from urllib.parse import quote

    still, moving = cast("tuple[nodes.image, nodes.image]", tuple(node.children))
    address = f"{writer.builder.imgpath}/{quote(writer.builder.images[still['uri']])}"
    writer.body.append(
        f'<picture><source media="(prefers-reduced-motion: reduce)" srcset="{writer.attval(address)}">'
    )
    moving.walkabout(writer)
    writer.body.append("</picture>")
    raise nodes.SkipNode


def _show_still(writer: Any, node: MovingPicture | LiveTrip) -> None:
    """Printed formats get the still image."""
    node.children[0].walkabout(writer)
    raise nodes.SkipNode


class LiveTrip(nodes.General, nodes.Element):
    """A picture that the explorer replaces when the reader asks; ``query`` is the address it opens with."""


class Explorer(nodes.General, nodes.Element):
    """The explorer in a frame."""


def _place(writer: Any, site: str) -> str:
    """The folder of the explorer as the page being written names it."""
    from posixpath import dirname

    if site.startswith(("/", "http://", "https://")):
        return site
    builder = writer.builder
    up = dirname(builder.get_relative_uri(builder.current_docname, builder.config.root_doc))
    return f"{up}/{site}" if up else site


def _show_live(writer: Any, node: LiveTrip) -> None:
    """The element with the picture inside: without its script, or in print, the picture stands."""
    place, query = _place(writer, node["site"]), writer.attval(node["query"])
    writer.body.append(f'<script defer src="{place}token-trip.js"></script><token-trip live query="{query}">')


def _end_live(writer: Any, node: LiveTrip) -> None:
    address = writer.attval(f"{_place(writer, node['site'])}?{node['query']}")
    writer.body.append(f'</token-trip><p><a class="external" href="{address}">Open in the explorer</a></p>')


def _show_explorer(writer: Any, node: Explorer) -> None:
    place = writer.attval(_place(writer, node["site"]))
    writer.body.append(f'<iframe src="{place}" title="The explorer" loading="lazy" height="760"')
    writer.body.append(' style="width: 100%; border: 1px solid currentColor"></iframe>')
    raise nodes.SkipNode


def _skip(writer: Any, node: Explorer) -> None:
    raise nodes.SkipNode


class TokenFact(SphinxRole):
    """``token-fact`` with a scenario and the name of one of its trip's facts."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        """The figure as text; wrong input is an error at the page's own line."""
        source, _, name = self.text.strip().rpartition(" ")
        try:
            text = trip_fact(take_trip(_scenario(source.strip(), self.env)), name)
        except ConfigError as error:
            message = self.inliner.reporter.error(f"token-fact: {error}", line=self.lineno)
            return [self.inliner.problematic(self.rawtext, self.rawtext, message)], [message]
        return [nodes.Text(text)], []


def _scenario(source: str, env: BuildEnvironment) -> Scenario:
    """A preset, or a file beside the page, which is then built anew when the file changes."""
    if Path(source).suffix.lower() not in SUFFIXES:
        return load_scenario(source)
    relative, absolute = env.relfn2path(source)
    env.note_dependency(relative)
    return load_scenario(Path(absolute))


def _model(source: str, env: BuildEnvironment) -> ReadModel:
    """A model that ships, or a config.json beside the page; the page is built anew when the file changes."""
    from tracer.model.configs import read_config_file
    from tracer.model.configs.presets import read_model_preset

    if not source.lower().endswith(".json"):
        return read_model_preset(source)
    relative, absolute = env.relfn2path(source)
    env.note_dependency(relative)
    return read_config_file(Path(absolute))


def _from_source(path: Path, page: Path) -> str:
    import os

    return Path(os.path.relpath(path, page.parent)).as_posix()


def _alt(trips: Trips, hop: int | None) -> str:
    from layouts.compose.scene_of_trip import build_scene

    name = trips.scenario.name or "scenario"
    if hop is None:
        return f"Map of {name}: {totals_line(trips)}"
    words = build_scene(trips).hops[hop].words
    return f"Map of {name}, hop {hop}: {words.title}. {words.what}"


def _table(trip: Trip, hop: int | None) -> nodes.table:
    """One row per hop with the counts after it; with ``hop``, one row per transfer of that hop."""
    if hop is None:
        header = [
            "layer",
            "hop",
            "GPUs touched",
            f"{trip.scenario.cluster.domain_word} crossings",
            "comm ops",
        ]
        rows = [
            [hop.layer or "", hop.kind, tally.gpus_touched, tally.node_crossings, tally.comm_ops]
            for hop, tally in zip(trip.hops, trip.tallies, strict=True)
        ]
    else:
        header = ["from", "to", "link", "bytes", "carries"]
        links = {"nvlink": "NVLink", "ib": "InfiniBand"}
        rows = [[t.src, t.dst, links[t.tier], f"{t.bytes:,}", t.role] for t in trip.hops[hop].transfers]
    group = nodes.tgroup(cols=len(header))
    group += [nodes.colspec(colwidth=1) for _ in header]
    group += nodes.thead("", _row(header))
    group += nodes.tbody("", *(_row(row) for row in rows))
    return nodes.table("", group)


def _row(cells: list[Any]) -> nodes.row:
    texts = [str(cell) for cell in cells]
    return nodes.row("", *(nodes.entry("", nodes.paragraph(text, text)) for text in texts))


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directives and the role; builds may run in parallel."""
    app.add_directive("token-trip", TokenTrip)
    app.add_directive("token-explorer", TokenExplorer)
    app.add_directive("token-model", TokenModel)
    app.add_config_value("tokentrip_site", "", "env", types=[str])
    app.add_role("token-fact", TokenFact())
    html, paper = (_show_moving, None), (_show_still, None)
    same = (_show_still, None)
    app.add_node(LiveTrip, html=(_show_live, _end_live), latex=same, text=same, man=same, texinfo=same)
    gone = (_skip, None)
    app.add_node(Explorer, html=(_show_explorer, None), latex=gone, text=gone, man=gone, texinfo=gone)
    app.add_node(MovingPicture, html=html, latex=paper, text=paper, man=paper, texinfo=paper)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
