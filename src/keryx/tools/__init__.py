"""What an agent may do: each tool with its effect, as calls of transactions and views."""
