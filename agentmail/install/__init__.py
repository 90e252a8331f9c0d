"""Installing into harnesses: their own configuration files, changed by as few bytes as can be."""
