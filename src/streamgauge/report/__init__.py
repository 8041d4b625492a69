"""What people see: text, terminal, HTML and charts. Nothing imports it but the command line."""
