"""The tools for chat agents, as the official client meets them."""
