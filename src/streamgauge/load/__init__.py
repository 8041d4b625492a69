"""OFFERED: what to send when: rate profiles, keys, fields, and the plan that makes any slice of the input again."""
