"""The values of captured programs: traced values, containers of them, variables, sparse rows."""
