"""The systems under test behind one interface (`spi`), and the registry of them."""
