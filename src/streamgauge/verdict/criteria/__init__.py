"""The named checks of a verdict: each takes the evidence of a trial and gives a number and its limit."""
