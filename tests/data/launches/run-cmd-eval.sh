#!/bin/bash
WHERE=$1
if [ -z ${CHUNKS} ]; then
    chunks=""
else
    chunks=" --num-layers-per-virtual-pipeline-stage ${CHUNKS}"
fi
if [ $WHERE = here ]; then
    NNODES=1
    GPUS=8
elif [ $WHERE = cluster ]; then
    NNODES=${POD_COUNT}
    GPUS=${POD_GPUS}
fi
LAUNCH="--nproc_per_node $GPUS --nnodes $NNODES"
TP=${5:-2}
cmd="torchrun $LAUNCH pretrain_qwen.py ${model_options} --tensor-model-parallel-size ${TP} --expert-model-parallel-size 4 ${chunks}"
echo ${cmd}
eval ${cmd}
