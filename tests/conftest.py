"""What is no test: programs that measure, run by hand (docs/benchmarks.md)."""

collect_ignore = ["benchmarks"]
