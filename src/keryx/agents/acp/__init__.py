"""The ACP agent: a program that speaks the Agent Client Protocol."""
