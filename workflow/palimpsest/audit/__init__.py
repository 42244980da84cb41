"""The ledger of a study's artifacts and the Merkle root over it."""
