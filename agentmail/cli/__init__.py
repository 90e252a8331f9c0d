"""The command line: parse a call, carry out one operation, render its result."""
