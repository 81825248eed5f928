"""Files, pictures and long results, stored by their content."""
