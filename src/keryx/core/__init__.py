"""The subjects: everything Keryx decides, stores and shows, one folder per subject."""
