"""The outbox: messages to send, their addresses, and the results of sending them."""
