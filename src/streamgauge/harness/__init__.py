"""The processes of one trial: test bed, generators, recorder and monitors."""
