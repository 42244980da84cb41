"""What the workflow's rules call, one file per stage: `palimpsest stage NAME`. Each file is its rule's entry point."""
