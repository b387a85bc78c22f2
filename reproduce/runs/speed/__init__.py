"""How fast this machine is: measured once, learned from finished jobs, kept in the store. Plans read it."""
