"""Records as plain numbers under the keys of the command line's contract."""
