"""Programs of the user's own as workloads: a TOML file that declares inputs, outputs, truth and command."""
