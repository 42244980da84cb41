"""What every stage needs: errors, hashes, random streams, table schemas, artifact I/O, code hashes."""
