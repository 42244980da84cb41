"""The checks of a verification, one file each: `check(chain, track)` yields what it finds; see `audit.verify`."""
