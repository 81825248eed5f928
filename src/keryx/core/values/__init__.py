"""Values that the rules of several subjects need. This package imports no subject."""
