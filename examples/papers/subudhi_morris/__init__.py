"""Claims and figures of Subudhi and Morris [SM02]."""
