"""What captured programs compute with: traced values, containers of them, variables, sparse rows."""
