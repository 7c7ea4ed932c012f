"""Arms in other libraries."""
