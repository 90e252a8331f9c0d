"""How fast it is, against yardsticks measured in the same run: `python -m tests.benchmarks`. Linux only."""
