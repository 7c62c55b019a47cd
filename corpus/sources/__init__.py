"""Where records come from: one module a format, all behind `open_source`."""
