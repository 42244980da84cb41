"""Where samples come from, how they are split, and what is recorded of each."""
