"""What all objects share: documents, records, times, patches, errors. Pure; imports nothing of ours."""
