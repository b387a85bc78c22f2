"""The results for readers: a document for each paper, and the report of a scale as one page of HTML."""
