"""The report: cells, tables and figures, made from histories.

histories, metrics                           results files -> tidy rows -> cells, as the measures of `declare` say
tables, entries, formats                     cells beside the paper's numbers -> a table -> Markdown, CSV, LaTeX
drawing, figures, categories, printed_marks  cells and rows -> a figure: curves, dots, heat maps, the paper's numbers
captions, names, styles                      what is said of a figure; how things are called, drawn
render                                       all of it for one artifact
"""
