"""What a user calls, one file per command."""
