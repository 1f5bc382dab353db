"""Where the field measures itself: look-up tables of real evaluations, one protocol for all."""
