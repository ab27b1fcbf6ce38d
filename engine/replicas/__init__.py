"""Replicas of a training, each on a device, compute what one computes, up to the order of its sums.

`share` is what one of them computes of each batch, `replicated_training` the one that is saved and evaluated,
`replica_process` the others, which `replica_group` starts and ends and which understand `messages`. `faults`
says which trials can have them. `sharding` says whose weights do not fit on each, which are then
`sharded_weights`, moved by a `sharded_training`; `training_factory` makes either.
"""
