"""Several Watchkeepers on one PostgreSQL: they share the work, and one that dies, stops or is cut off costs time only."""
