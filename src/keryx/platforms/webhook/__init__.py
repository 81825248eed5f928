"""Webhooks as a platform: programs send signed messages over HTTP and get answers as signed callbacks."""
