"""Algorithm 1 on tables that do not fit a process.

A table comes in parts (`parts`), which somebody holds in shards (`shard`): of X the bins of
LightGBM's histograms, a byte a cell, and beside them y and f_t. A round is one training of
LightGBM's over all shards (its own data-parallel learner, over sockets); weights, losses and gaps
are sums over the shards (`fit`). Shards live in this process (`local`) or on Dask workers (`dask`).
"""
