"""Tools: what a worker may call. `base` says what one is; the others are some."""
