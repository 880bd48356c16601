"""weft for programs in Python."""
