"""Mail between coding agents on one machine."""

__version__ = "0.1.0"
