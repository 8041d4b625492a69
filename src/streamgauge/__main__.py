"""`python -m streamgauge` is the command `streamgauge`."""

import sys

from streamgauge.core.exit_codes import ExitCode

try:
    from streamgauge.cli.app import main
except KeyboardInterrupt:  # Ctrl-C while modules load
    print("stopped", file=sys.stderr)
    sys.exit(ExitCode.SIGINT)

if __name__ == "__main__":
    main()
