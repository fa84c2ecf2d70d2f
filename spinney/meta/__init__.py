"""What all objects share: documents, records, schemas, values, patches, errors. Nothing of ours.

It imports nothing else of Spinney, and nothing that waits, asks the time or rolls dice.
"""
