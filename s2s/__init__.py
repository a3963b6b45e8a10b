"""The edge: what a person or a client touches."""
