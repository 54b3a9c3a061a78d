"""The directive in a small site, built for real."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import tracer
from tests.test_pytest_plugin import MESH
from tracer.trip.facts import WORDS

CONF = 'extensions = ["myst_parser", "app.sphinx_ext"]\n'
PAGE = """# A trip

```{token-trip} six-cuts
:hop: 4
:alt: Two experts, one through a relay
```

```{token-trip} nested/mesh.toml
:show: animation
:caption: The *whole* trip
```

It lands on GPU {token-fact}`six-cuts home` of {token-fact}`nested/mesh.toml nodes~` nodes.

```{token-trip} six-cuts
:show: log
```

```{token-trip} six-cuts
:tokens: 0,3:40
:hop: 4
```

```{token-trip} six-cuts
:show: counts
```

```{token-trip} six-cuts
:show: table
:hop: 4
```
"""


def build(folder: Path, page: str, *more: str) -> subprocess.CompletedProcess[str]:
    (folder / "conf.py").write_text(CONF)
    (folder / "index.md").write_text(page)
    (folder / "nested").mkdir(exist_ok=True)
    (folder / "nested" / "mesh.toml").write_text(MESH)
    out = folder / "_build" / "html"
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "-b", "html", *more, str(folder), str(out)]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_a_site_shows_pictures_logs_tables_and_counts(tmp_path: Path):
    done = build(tmp_path, PAGE)
    assert done.returncode == 0, done.stderr
    html = (tmp_path / "_build" / "html" / "index.html").read_text()
    assert 'alt="Two experts, one through a relay"' in html
    assert "The <em>whole</em> trip" in html
    assert "Trip log: 23/32 GPUs" in html
    assert "<p>23/32 GPUs · 15 node crossings (14 ep, 1 pp) · 41 comm ops · 532 kB</p>" in html
    assert "<p>InfiniBand</p>" in html
    pictures = sorted((tmp_path / "_build" / "html" / "_images").glob("*.svg"))
    texts = [picture.read_text() for picture in pictures]
    assert sorted("animateMotion" in text for text in texts) == [False, False, False, True]
    assert sum("replica 3, position 40" in text for text in texts) == 1
    assert "Map of six-cuts, hop 4: Dispatch to experts. Tokens 0 and 1 take this hop" in html
    moving = pictures[["animateMotion" in text for text in texts].index(True)].name
    found = re.search(r'reduce\)" srcset="_images/([^"]+)"><img [^>]*src="_images/([^"]+)"', html)
    assert found is not None
    assert (found[2], "animateMotion" in (pictures[0].parent / found[1]).read_text()) == (moving, False)
    nodes = tracer.load_scenario(tmp_path / "nested" / "mesh.toml").cluster.nvlink_domains
    assert f"It lands on GPU 11 of {WORDS[nodes]} nodes." in html


@pytest.mark.parametrize(
    ("block", "complaint"),
    [
        ("{token-trip} six-cutz", "index.md:3: .*did you mean 'six-cuts'"),
        ("{token-trip} six-cuts\n:hop: 99", "index.md:3: .*hop=99 must be from 0 to 41"),
        ("{token-trip} six-cuts\n:tokens: 0,1\n:show: table", "index.md:3: .*cannot hold 2 tokens"),
        ("{token-trip} gone.toml", "index.md:3: .*gone.toml"),
        ("{token-trip} six-cuts\n:show: film", "index.md:4: .*film"),
        ("{token-trip} six-cuts\n:show: log\n:hop: 3", "index.md:3: .*has no place in a log"),
        ("{note}\n{token-fact}`six-cuts homes`", "index.md:.*fact='homes' is not one of this trip.*'home'"),
    ],
)
def test_a_mistake_is_an_error_with_file_and_line(block: str, complaint: str, tmp_path: Path):
    done = build(tmp_path, f"# A trip\n\n```{block}\n```\n")
    assert done.returncode != 0
    assert re.search(complaint, done.stderr.replace("\n", " ")), done.stderr


def test_a_model_is_drawn_by_name_and_from_a_config_beside_the_page(tmp_path: Path):
    config = {"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
              "num_key_value_heads": 2, "intermediate_size": 128, "vocab_size": 1000}  # fmt: skip
    (tmp_path / "config.json").write_text(json.dumps(config))
    block = "```{token-model} deepseek-v3\n:caption: Its layers\n```\n\n```{token-model} config.json\n```\n"
    done = build(tmp_path, "# Models\n\n" + block)
    assert done.returncode == 0, done.stderr
    html = (tmp_path / "_build" / "html" / "index.html").read_text()
    assert "671,026,404,352 parameters" in html
    assert "2 of full + gated FFN 128" in html
    wrong = build(tmp_path, "# Models\n\n```{token-model} deepseek-v33\n```\n")
    assert wrong.returncode != 0
    assert "token-model: model.preset='deepseek-v33' is not a model that ships" in wrong.stderr


def test_a_live_trip_is_a_picture_that_becomes_the_explorer(tmp_path: Path):
    page = (
        "# Live\n\n```{token-trip} six-cuts\n:live:\n:hop: 4\n:caption: Live\n```\n\n"
        "```{token-trip} nested/mesh.toml\n:live:\n```\n\n```{token-explorer}\n```\n"
    )
    without = build(tmp_path, page)
    assert without.returncode != 0
    assert "tokentrip_site is not given and is needed for what is live; write it in conf.py" in without.stderr
    done = build(tmp_path, page, "-D", "tokentrip_site=site")
    assert done.returncode == 0, done.stderr
    html = (tmp_path / "_build" / "html" / "index.html").read_text()
    assert '<script defer src="site/token-trip.js"></script>' in html
    assert re.search(
        r'<token-trip live query="scenario=six-cuts&amp;hop=4">\s*<img [^>]*_images/six-cuts', html
    )
    assert '<a class="external" href="site/?scenario=six-cuts&amp;hop=4">' in html
    assert re.search(r'query="scenario=&amp;[^"]*mesh.tp=\d', html)
    assert '<iframe src="site/"' in html
    plain = build(tmp_path, page, "-D", "tokentrip_site=site", "-b", "text")
    assert plain.returncode == 0, plain.stderr
