"""Set-up for all tests."""

import signal

# A shell ignores Ctrl-C in commands that it starts in the background, and programs inherit that. Tests of Ctrl-C need the usual handler.
signal.signal(signal.SIGINT, signal.default_int_handler)
