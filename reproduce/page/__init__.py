"""The report as HTML: one page a scale, a single file with everything in it."""
