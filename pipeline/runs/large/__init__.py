"""Runs of tables in parts, which are fitted by shards; see `pipeline.boosting.distributed`."""
