"""Values before and at the start of a run: what is known of constants, random numbers, initial values of variables."""
