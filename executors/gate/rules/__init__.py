"""What a gate denies and asks: one family of rules a file, in the order of `order`."""
