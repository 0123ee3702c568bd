"""What a maintainer runs by hand."""
