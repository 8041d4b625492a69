"""The suite that every engine passes, as a pytest plug-in: `pytest --streamgauge-engine NAME`."""
