"""What each command computes and shows, one file a command."""
