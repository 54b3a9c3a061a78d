TP=4; PP=2; EP=8; ETP=1; INFER_TP=8; NODES=4
python3 -m verl.trainer.main_ppo --config-path=config --config-name='ppo_megatron_trainer.yaml' \
 actor_rollout_ref.actor.megatron.tensor_model_parallel_size=$TP actor_rollout_ref.actor.megatron.pipeline_model_parallel_size=$PP \
 actor_rollout_ref.actor.megatron.expert_model_parallel_size=$EP actor_rollout_ref.actor.megatron.expert_tensor_parallel_size=$ETP \
 actor_rollout_ref.ref.megatron.tensor_model_parallel_size=$TP actor_rollout_ref.ref.megatron.pipeline_model_parallel_size=$PP \
 actor_rollout_ref.ref.megatron.expert_model_parallel_size=$EP actor_rollout_ref.ref.megatron.expert_tensor_parallel_size=$ETP \
 actor_rollout_ref.rollout.tensor_model_parallel_size=${INFER_TP} trainer.nnodes=${NODES} trainer.n_gpus_per_node=8
