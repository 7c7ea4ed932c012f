"""Eigenvalues of a family of matrices joined into branches, and what each branch is."""
