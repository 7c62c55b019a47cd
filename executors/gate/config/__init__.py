"""How a gate is configured: one section a file, put together in `config`."""
