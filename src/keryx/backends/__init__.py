"""Where background processes run."""
