"""What is offered and when: rate profiles, fields, and the plan that makes any slice of the input again."""
