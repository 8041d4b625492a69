"""What recording, counting and keeping the measurements costs the instrument itself."""
