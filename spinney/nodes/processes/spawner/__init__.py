"""What runs in the small process that forks containers, and above each of them.

It imports the standard library alone and is started without site packages: it is forked for every
container, so what it holds in memory is paid for each time.
"""
