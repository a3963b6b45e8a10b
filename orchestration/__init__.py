"""Conducting: conversations, placement, supervision."""
