"""Checks on this machine that the instrument is right."""
