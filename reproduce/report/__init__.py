"""From histories to what is read: cells, tables and figures."""
