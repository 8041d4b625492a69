"""What a run leaves on disk: its folder, its tables and its histogram log."""
