"""Algorithm 1 on tables that do not fit into the memory of one process.

A table comes in parts (`parts`) and is divided among shards (`shard`). A shard holds of X the bins
of LightGBM's histograms, a byte a cell, and beside them y and f_t. A round is one training of
LightGBM over all shards (its own data-parallel learner, over sockets); weights, losses and gaps are
sums over the shards (`fit`). Shards are held by this process (`local`) or by Dask workers (`dask`).
"""
