"""What is no launch, too large, or made to hurt: a clear refusal, quickly, and nothing is run."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest

from tracer.errors import ConfigError
from tracer.frameworks.launch.door import read_launch
from tracer.frameworks.opening import Asked, meshes_of

FILES = Path(__file__).parents[1] / "data" / "launches"
NINE = ", ".join(["*{0}"] * 9)
BOMB = "a: &a [x, x]\n" + "".join(
    f"{chr(98 + i)}: &{chr(98 + i)} [{NINE.format(chr(97 + i))}]\n" for i in range(20)
)
HOSTILE = {
    "ten megabytes of shell": ("echo x; " * 1_250_000, "characters"),
    "words without end": ("vllm serve m " + "-tp 2 " * 60_000, "are more than 20000 words"),
    "brackets without end": ("( " * 15_000 + "x", "does not say which framework"),
    "commands inside commands": ("A=" + "$(" * 50_000, "does not close"),
    "defaults inside defaults": ("A=" + "${X:-" * 20_000 + "1" + "}" * 20_000, "does not close"),
    "ifs inside ifs": ("if true; then " * 5_000, "blocks inside each other"),
    "a power tower": ("vllm serve m -tp $((9**9**9**9))", "nothing is run here"),
    "text that doubles": ("A=ab\n" + "A=$A$A\n" * 100 + "vllm -tp 2", "grows to"),
    "an array that doubles": ("A=(a b)\n" + 'A+=("${A[@]}")\n' * 60 + "vllm -tp 2", "grows to"),
    "text with an unknown part that doubles": ('A="a ${U}"\n' + 'A="$A$A"\n' * 60 + "vllm $A", "grows to"),
    "a page of blocks": ("```yaml\nvllm: 1\n```\n" * 20_000, "over 1,000 code blocks"),
    "loops inside loops": (
        "for i in {0..50}; do for j in {0..50}; do for k in {0..50}; do X=$i; done; done; done",
        "statements",
    ),
    "branches without end": (
        "".join(f"if [ $Q{i} = 1 ]; then A+=(--x{i}); fi\n" for i in range(300)) + "vllm -tp 2 ${A[@]}",
        "in more than 100 ways",
    ),
    "a quote that stays open": ("vllm 'x" + "\n" * 100_000, "a quote that does not close"),
    "a YAML bomb": (BOMB, "over 64 aliases"),
    "a thousand documents": ("kind: Pod\napiVersion: v1\n---\n" * 1_000, "over 100 documents"),
    "deep YAML": ("a:\n" + "".join(" " * i + "b:\n" for i in range(1, 300)), "over 50 levels of nesting"),
    "wide YAML": ("a: 1\n" + "".join(f"k{i}: v\n" for i in range(39_000)), "over 60,000 keys"),
    "deep JSON": ('{"a":' * 50_000, "is not valid JSON"),
    "long TOML keys": ("[a]\n" + "b." * 5_000 + "c = 1", "over 300 dots"),
    "a YAML tag that would run": (
        "a: !!python/object/apply:os.system [ls]\nb: 1",
        "is not valid YAML: line 1",
    ),
    "a binary": ("\x7fELF\x00\x01" + "\x00" * 1_000, "is not text"),
    "bytes that are no UTF-8": ("\ufffd" * 1_000, "is not text"),
    "Python": ("import torch\nprint(1)\n", "is Python, which is not read"),
    "a client": ("vllm bench serve --model m", "is a client"),
    "a chart": ('apiVersion: v1\nkind: Pod\nspec: {x: "{{ .Values.tp }}"}', "is a template"),
    "a chart with blocks": ("{{- if .Values.x }}\napiVersion: v1\nkind: Pod\n{{- end }}", "is a template"),
    "prose": ("we run this on many GPUs", "does not say which framework"),
    "nothing": ("", "does not say which framework"),
}


@pytest.mark.parametrize("name", sorted(HOSTILE))
def test_a_clear_refusal(name: str) -> None:
    text, message = HOSTILE[name]
    started = time.process_time()
    with pytest.raises(ConfigError, match=message) as error:
        meshes_of(read_launch(text), Asked())
    # Under a second where nothing else runs; the bound is wide for machines that are busy.
    assert time.process_time() - started < 60
    assert error.value.fix
    assert len(str(error.value)) < 2_000


PIECES = (
    *("$((", "${", "}", "$(", ")", '"', "'", "`", "<<EOF\n", "\nEOF\n", "&&", "||", ";", "|", "[[", "]]"),
    *("if ", "then ", "fi", "for i in ", "do ", "done", "case ", "esac", ";;", "A=(", "$A", "${A[@]}"),
    *(
        "{{ .Values.x }}",
        "- ",
        "---\n",
        "&a ",
        "*a",
        "!!x",
        "[",
        "]",
        "{",
        "#",
        "\\",
        "-N$X",
        "$@",
        "\x00",
        "<",
    ),
    *("<<<", "((", 'bash -c "', "eval ", "docker run ", "srun ", "accelerate launch ", "args: 5", "size: 0"),
    *("env: [1]", "resources: 3", "replicas: -1"),
)


def damaged(text: str, draw: random.Random) -> str:
    """A text with pieces put in, taken out and moved."""
    for _ in range(draw.randint(1, 6)):
        at, other = draw.randrange(len(text) + 1), draw.randrange(len(text) + 1)
        kind = draw.random()
        if kind < 0.5:
            text = text[:at] + draw.choice(PIECES) + text[at:]
        elif kind < 0.8:
            text = text[:at] + text[at + draw.randint(1, 30) :]
        else:
            text = text[:at] + text[other : other + 40] + text[at:]
    return text


def test_damaged_files_are_read_or_refused() -> None:
    draw = random.Random(0)
    texts = [path.read_text() for path in sorted(FILES.iterdir()) if path.name != "expected.json"]
    outcomes = [0, 0]
    for _ in range(400):
        text = damaged(draw.choice(texts), draw)
        try:
            meshes_of(read_launch(text, filename=draw.choice([None, "x.yaml", "x.sh"])), Asked())
            outcomes[0] += 1
        except ConfigError as error:
            assert error.field and error.rule and error.fix
            outcomes[1] += 1
    assert min(outcomes) > 20
