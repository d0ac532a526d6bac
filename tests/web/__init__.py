"""Tests of the page and the HTTP API."""
