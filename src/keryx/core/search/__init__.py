"""Full-text search: the index, its tables, its queries and the task that keeps it up to date.

The rest of Keryx uses only the modules that ``tests/architecture/test_search_boundary.py`` lists. Segments, blocks and
postings are known only here.
"""
