"""The agent of a node: keeps the pods bound to it as they should be, and tells what became of them.

`lifecycle` decides, purely; `statuses` tells; `environment` and `volumes` resolve what a container
is given; `prober` looks at what runs; `agent` carries out, over the ports alone.
"""
