"""From histories to what is read: cells, tables, figures, verdicts and the report."""
