"""The load: rate profiles, fields, and the plan that can make any slice of the input again."""
