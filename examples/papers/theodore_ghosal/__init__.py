"""Claims and figures of Theodore and Ghosal [TG95], and the methods only they need."""
