"""How wrong the stiffness of a controller may be, and what helps."""
