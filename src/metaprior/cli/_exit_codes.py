"""What the command says to a shell when it did not do what it was asked to."""

BAD_INPUT = 2
# Of a command that was told to stop by the keyboard.
INTERRUPTED = 130
