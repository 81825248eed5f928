"""What each command does, by noun; ``run_command`` chooses."""
