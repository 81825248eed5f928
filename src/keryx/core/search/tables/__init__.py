"""The tables of the search index: immutable segments of packed postings, and the position they cover.

Rows in, rows out: ``search.rules`` packs and reads the bytes, and the transactions decide which rows to write.
"""
