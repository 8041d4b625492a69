"""`python -m streamgauge` is the command `streamgauge`."""

import sys

try:
    from streamgauge.cli.app import main
except KeyboardInterrupt:  # Ctrl-C while modules load
    sys.exit("stopped")

if __name__ == "__main__":
    main()
