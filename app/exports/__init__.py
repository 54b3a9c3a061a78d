"""What is seen, as a file: the formats, the stamp that each file carries, and whether it is still true."""
