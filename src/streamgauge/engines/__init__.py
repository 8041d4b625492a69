"""TESTED: the engines behind one seam."""
