"""The scheduler: the loop around `decisions/placement` that gives gangs their nodes.

scheduler   the loop: takes in what changed, looks at gangs in the order of their turns, binds
ledger      what is known: the snapshot, kept up to date, and what was decided and not yet seen
demanding   what gangs ask for
line        whose turn it is
rooms       what is kept for gangs that wait: for whom others go, for whom room gathers
disruptor   takes gangs away, whole
teller      says why gangs wait
attending   sees to keys for those two
hands       writes
"""
