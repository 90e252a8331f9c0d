"""Ambient delivery to harnesses: one core, and one small adapter for each. A hook never fails its harness."""
