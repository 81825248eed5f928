"""The model agent: a model of any provider."""
