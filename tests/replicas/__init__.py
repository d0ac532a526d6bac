"""Several Watchkeepers on one PostgreSQL: one that dies, stops or is cut off costs time only."""
