"""The scheduler: the loop around `decisions/placement` that gives gangs their nodes.

scheduler   the loop: takes in what changed, has gangs looked at in the order of their turns
line        whose turn it is
placer      one look at one gang, and what is done about it
rooms       what is kept for gangs that wait: for whom others go, for whom room gathers
binder      sends what was decided
disruptor   takes gangs away, whole
teller      says why gangs wait
ledger      what is known: the snapshot, kept up to date, and what was decided and not yet seen
gangs       how gangs stand
demanding   what they ask for
attending   sees to keys, for disruptor and teller
hands       writes
"""
