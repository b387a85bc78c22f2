"""The report as HTML: one page a scale that is a single file, and a folder of pages for a web server."""
