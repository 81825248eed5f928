"""Full-text search: the index, its tables, its queries and the task that keeps it up to date.

Only the modules that ``tests/architecture/test_search_face.py`` lists are for the rest of Keryx. Segments, blocks and
postings are known only here.
"""
