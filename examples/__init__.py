"""Examples of the library; `papers` holds published claims beside our results."""
