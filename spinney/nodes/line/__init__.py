"""The line: how a control plane reaches the agent of a node of this machine.

A socket in the data folder, which only its owner can open. The agent listens; each thing that is
asked has a connection of its own, so that each stream waits for its own reader and for nobody
else's. One connection is held for as long as both live: that is the node's liveness, and what the
pods use is told on it.

`frames` what is sent · `sockets` where · `serving` the agent's side · `calling` the other side ·
`gate` what waits for the control plane to be there
"""
