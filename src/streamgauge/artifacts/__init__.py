"""Run folders and the files in them: tables, histograms, atomic writes."""
