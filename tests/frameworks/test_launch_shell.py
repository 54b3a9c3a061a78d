"""Shell as it is written, read without a shell: words, arrays, arithmetic, branches, here-documents."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tracer.errors import ConfigError
from tracer.frameworks import from_flags, from_line
from tracer.frameworks.launch.arithmetic import NotReadError, evaluate
from tracer.frameworks.launch.expansion import Undecided
from tracer.frameworks.launch.script import read_script
from tracer.frameworks.unread import Unread

PRINT = "launch "


def words(text: str, **pinned: str) -> list[str]:
    """The words of the last command that is called launch."""
    commands = [command for command in read_script(text, pinned).commands if command.words[0] == "launch"]
    return list(commands[-1].words[1:])


SAME_AS_BASH = [
    "launch a 'b c' \"d e\" f\\ g",
    "A=(1 '2 3' 4); launch ${A[@]}",
    "A=(1 '2 3' 4); launch \"${A[@]}\"",
    "A=(1 '2 3' 4); launch \"${A[*]}\" x",
    "A=(1); A+=(2 3); launch ${A[@]} ${#A[@]} ${A[1]}",
    "A=(1 # one\n 2\n); launch ${A[@]}",
    "S='a b  c'; launch $S \"$S\" x$S",
    "S='a'; S+=' b'; launch $S",
    'X=5; launch ${X:-1} ${Y:-1} ${Y-2} ${X:+3} ${Y:+4} "${Y:-a b}" ${Y:-a b}',
    "launch ${Y:=7} $Y",
    "P=/a/b/c.tar.gz; launch ${P##*/} ${P%.*} ${P%%.*} ${P#/} ${P/b/X} ${P:1:3}",
    "A=3; B=4; launch $((A*B)) $((A**2 + B%3)) $(( (A+B) << 1 )) $((A > B ? A : B)) $(($A+1))",
    "A=3; launch $(((A + 1) * 2)) $(((A)))",
    "export TP=2; readonly PP=4; declare X=1; launch $TP $PP $X",
    "TP=2\nTP=$((TP*2))\nlaunch $TP",
    "f() { local A=$1; launch $A $2 $#; }; f x y z",
    "function g { launch \"$@\"; }; g a 'b c'",
    "for i in 1 2 3; do launch $i; done",
    "for i in {1..4}; do X=$i; done; launch $X",
    "if [ 3 -gt 2 ]; then launch a; else launch b; fi",
    "X=b; if [[ $X == a* ]]; then launch a; elif [[ $X = b ]]; then launch b; fi",
    "X=dev; case $X in prod) launch 1;; dev|test) launch 2;; *) launch 3;; esac",
    '[ -z "$NOTHING" ] && A=1 || A=2; launch $A',
    "[[ 1 -eq 1 && 2 -eq 3 ]] && A=1 || A=2; launch $A",
    "while [ $# -gt 0 ]; do shift; done; launch x",
    "A=1 B=2; launch $A$B ${A}x \"$A\"'$B'",
    "CMD='launch a b'; $CMD c",
    "CMD=\"launch a 'b c'\"; eval $CMD",
    "launch a \\\n  b \\\n  c # not d",
    "(A=2; launch in $A)",
    "launch $'a\\nb' \"a\\$b\" 'a\\b'",
    "launch a 2>&1 >/dev/null b",
    'ARGS="--a 1 \\\n --b 2"; launch $ARGS',
    'A=(--x "1 2"); B=("${A[@]}" --y); launch "${B[@]}"',
    "N=4; if (( N > 2 )); then launch a; else launch b; fi",
    'A=(x y); launch "pre ${A[*]} post"',
    "set -e; launch a || exit 1",
    "set -- a 'b c'; launch \"$@\" $# $1",
    "declare -a A=(1 2); launch ${A[@]}",
    ': ${T:=4} "${P:=2}"; launch $T $P',
    "T=${A:-${B:-4}}; launch $T $(( ${C:-2} * 2 ))",
    "{ launch a; } 2>/dev/null",
    'A=(1 2); ALL="${A[*]} 3"; launch $ALL',
    "A=(a); A[1]=b; A[0]=c; launch ${A[@]}",
]


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash gives the words to compare with")
@pytest.mark.parametrize("text", SAME_AS_BASH)
def test_words_are_those_of_bash(text: str, tmp_path: Path) -> None:
    printed = tmp_path / "words"
    prelude = f'launch() {{ for w in "$@"; do printf "%s\\0" "$w"; done > {printed}; }}\n'
    subprocess.run(
        ["bash", "-c", prelude + text],
        check=True,
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"]},
        timeout=600,
    )
    assert words(text) == printed.read_text().split("\0")[:-1]


@pytest.mark.parametrize(
    ("text", "typed", "missing"),
    [
        ("launch $X", "$X", ("X",)),
        ("launch ${X}", "${X}", ("X",)),
        ("launch --a=$X", "--a=$X", ("X",)),
        ('launch "$X"y', "$Xy", ("X",)),
        ("launch $((X*Y))", "$((X*Y))", ("X", "Y")),
        ("X=2; launch $((X*Y))", "$((X*Y))", ("Y",)),
        ("launch $(nproc)", "$(nproc)", ()),
        ("launch `nproc`", "`nproc`", ()),
        ("A=$(nproc); launch $A", "$A", ("A",)),
        ("launch ${X:-$Y}", "${X:-$Y}", ("X",)),
        ("launch $((9**99))", "$((9**99))", ()),
        ("read -r A B; launch $A", "$A", ("A",)),
        ("for n in $NODES; do launch $n; done", "$n", ("n",)),
    ],
)
def test_what_is_not_known_stays_as_typed(text: str, typed: str, missing: tuple[str, ...]) -> None:
    (word,) = words(text)
    assert isinstance(word, Unread)
    assert (str(word), word.missing) == (typed, missing)


def test_a_string_with_an_unset_part_still_splits() -> None:
    found = words('A="--nproc 8 --rank $RANK --nnodes 2"; launch $A')
    assert found == ["--nproc", "8", "--rank", "$RANK", "--nnodes", "2"]
    assert [isinstance(word, Unread) for word in found] == [False, False, False, True, False, False]


def test_a_branch_from_outside_leaves_only_what_differs_undecided() -> None:
    found = words('A=(--a); if [ "$MOE" = 1 ]; then A+=(--ep 8); fi; launch "${A[@]}" --z')
    assert [str(word) for word in found] == ["--a", "${A[@]}", "--z"]
    undecided = found[1]
    assert isinstance(undecided, Undecided)
    assert (undecided.options, undecided.missing) == ((("--ep", "8"), ()), ("MOE",))


def test_values_given_by_the_caller_win() -> None:
    assert words("TP=2; launch $TP ${PP:-4} $((TP*2))", TP="8", PP="1") == ["8", "1", "16"]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1+2*3", 7),
        ("(1+2)*3", 9),
        ("-7/2", -3),
        ("-7%2", -1),
        ("0x10 + 010", 24),
        ("1 ? 2 : 3", 2),
        ("!0", 1),
    ],
)
def test_arithmetic(text: str, value: int) -> None:
    assert evaluate(text, lambda name: 0) == value


@pytest.mark.parametrize(
    "text", ["1/0", "1 2", "(1", "x=1", "9**64**2", "1<<100", "$(ls)", "a[0]", "(" * 100 + "1"]
)
def test_arithmetic_that_is_not_read(text: str) -> None:
    with pytest.raises(NotReadError, match=r".+"):
        evaluate(text, lambda name: 1)


def test_nothing_is_run(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    touch = f"touch {mark}"
    text = f"{touch}; A=$({touch}); `{touch}`; eval {touch}; cat > {mark} <<E\nx\nE\nvllm -tp 2"
    assert from_line(text).world_size == 2
    assert not mark.exists()


def test_here_documents_are_files_that_a_launch_reads() -> None:
    text = (
        "TP=4\ncat > conf/extra.yml <<EOF\ntensor_parallel_size: $TP\nenable_attention_dp: true\nEOF\n"
        "trtllm-serve m --extra_llm_api_options ./conf/extra.yml"
    )
    layout = from_line(text)
    assert layout.scenario.mesh.dp == 4
    quoted = text.replace("<<EOF", "<<'EOF'")
    with pytest.raises(ConfigError, match=r"--tp_size='\$TP' is a shell variable"):
        from_line(quoted)


MEGATRON = "torchrun --nproc-per-node 8 pretrain_gpt.py "


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            "vllm serve m -tp $TP",
            r"--tensor-parallel-size='\$TP' takes \$TP, which nothing .* add --set TP=N",
        ),
        ("vllm serve m -tp $(nproc)", r"'\$\(nproc\)' is the output of a command, and nothing is run here"),
        (
            "torchrun --nnodes $NODES --nproc-per-node 8 pretrain_gpt.py",
            r"--nnodes='\$NODES' takes \$NODES.* add --set NODES=N, or add --gpus N",
        ),
        (
            MEGATRON + "$MODEL_PARALLEL_ARGS",
            r"takes \$MODEL_PARALLEL_ARGS.* it may hold the flags of the mesh",
        ),
        (MEGATRON + "$ARGS", r"it may hold the flags of the mesh"),
        (
            "if [ $BIG = 1 ]; then TP=8; else TP=4; fi\nvllm serve m -tp $TP",
            r"decided by a branch .* it changes --tensor-parallel-size \(8 or 4\); add --set TP=\.\.\.",
        ),
        (
            'A=(-tp 2)\nif [ $EP = 1 ]; then A+=(-ep); fi\nvllm serve m -dp 2 "${A[@]}"',
            r"changes --enable-expert-parallel \(True or not given\); add --set EP=",
        ),
    ],
)
def test_what_shapes_the_mesh_is_asked_for(line: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        from_line(line)


@pytest.mark.parametrize(
    "line",
    [
        'vllm serve m -tp 2 --port $PORT --data-parallel-rpc-port $RPC --node-rank "$NODE" -dpr $START',
        "vllm serve $MODEL -tp 2 --max-model-len $LEN --api-key $(cat key)",
        "vllm serve m -tp 2 $EXTRA",
        'if [ $FAST = 1 ]; then A+=(--enforce-eager); fi\nvllm serve m -tp 2 "${A[@]}"',
        "if [ $RANK = 0 ]; then vllm serve m -tp 2; else vllm serve m -tp 2 --headless; fi",
        "torchrun --nproc-per-node 2 --node-rank $R --master-addr $M pretrain_gpt.py --seq-length 8",
        "vllm serve m -tp 2 $@",
    ],
)
def test_what_shapes_nothing_is_never_asked_for(line: str) -> None:
    assert from_line(line).world_size == 2


def test_a_branch_is_settled_by_the_caller() -> None:
    line = 'A=(-tp 2)\nif [ $EP = 1 ]; then A+=(-ep); fi\nvllm serve m -dp 2 "${A[@]}"'
    assert from_line(line, settings={"EP": "1"}).scenario.mesh.ep == 4
    assert from_line(line, settings={"EP": "0"}).scenario.mesh.ep == 1


def test_slurm_headers_give_the_nodes() -> None:
    script = (
        "#!/bin/bash\n#SBATCH --nodes=4\n#SBATCH --gpus-per-node=8\n#SBATCH --ntasks-per-node=1\n"
        "srun torchrun --nnodes $SLURM_NNODES --nproc-per-node $SLURM_GPUS_PER_NODE pretrain_gpt.py"
    )
    assert from_flags("megatron", script + " --tensor-model-parallel-size 8").world_size == 32
    without = script.replace("#SBATCH --nodes=4\n", "")
    with pytest.raises(ConfigError, match=r"takes \$SLURM_NNODES"):
        from_flags("megatron", without)
    assert from_flags("megatron", without, settings={"SLURM_NNODES": "2"}).world_size == 16
