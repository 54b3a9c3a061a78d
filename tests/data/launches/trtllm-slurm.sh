#!/bin/bash
#SBATCH -A <account>
#SBATCH -N 2
#SBATCH --ntasks-per-node=8
echo "Starting trtllm-serve..."
srun -l \
    --container-image=${CONTAINER_IMAGE} \
    --container-mounts=${MOUNT_DIR}:${MOUNT_DEST} \
    --export=ALL,PYTHONPATH=${SOURCE_ROOT} \
    --mpi=pmix \
    bash -c "
        set -ex
        $PROLOGUE
        export PATH=$PATH:~/.local/bin

        trtllm-llmapi-launch \
         trtllm-serve $LOCAL_MODEL \
            --tp_size 16 \
            --host 0.0.0.0 \
            ${ADDITIONAL_OPTIONS}
    "
