"""What tests share: oracles, programs made at random, ways to compare."""
