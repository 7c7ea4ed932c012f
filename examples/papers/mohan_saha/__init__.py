"""Claims and figures of Mohan and Saha [MS], and arithmetic other than double precision."""
