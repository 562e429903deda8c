"""More about gradients: second derivatives, where they stop, and rows that stand for tables."""
