"""Versioned objects in memory, a journal that keeps them, and a history that watches resume from.

`store.Store` puts together what its neighbours hold: `meta.indexes` (the newest version of each
object), `objects` and `history` (the latest changes), `watching` (who is told), `journals` and
`sqlite` (what survives). `reader` makes the ports' Reader and Source of it.
"""
