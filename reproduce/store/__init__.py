"""Results and cells on disk: written whole, sealed, refused if they are not what was written."""
