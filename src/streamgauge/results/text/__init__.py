"""Words for the codes and numbers of results: every sentence of a verdict, a check, a warning and an advice."""
