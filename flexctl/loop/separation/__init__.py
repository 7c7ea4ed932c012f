"""How soft an arm may be before the time scales of a composite loop no longer separate."""
