"""How fast this machine is: measured once, kept in the store. Plans read it."""
