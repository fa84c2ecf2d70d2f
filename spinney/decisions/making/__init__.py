"""Documents of the objects made for a set: what each says, not whether or when it is made."""
