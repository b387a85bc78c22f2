"""The pages that say what came out, from committed cells."""
