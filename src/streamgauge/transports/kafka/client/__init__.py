"""The driver's side: settings, producer, outlet, inlet and result messages."""
