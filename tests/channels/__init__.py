"""Channels against local fakes of what they speak to: nothing in the product is replaced."""
