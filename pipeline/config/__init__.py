"""What a command is asked to do: the schema, its composition from ``conf/``, and clear refusals."""
