"""Expected results of a user's job."""
