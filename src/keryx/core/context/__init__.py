"""What a model reads: prompt, summaries, memory, token counts and prices."""
