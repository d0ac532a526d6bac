"""A real Ray for the tests. Never: product code, nor anything that the product imports."""
