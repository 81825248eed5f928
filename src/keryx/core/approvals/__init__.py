"""Questions to a person, and standing approvals."""
