"""The tables of the documentation, a module for each kind; `tools/docs_tables.py` writes them into the pages."""
