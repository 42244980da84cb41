"""The command line: the only place that sees arguments, the environment and the clock."""
