"""The tests mirror src/backburner; a package, so that they can share what is in this folder."""
