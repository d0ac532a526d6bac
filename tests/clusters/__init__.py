"""Tests of the clusters: one contract for all (`contract`), and what is each one's own."""
