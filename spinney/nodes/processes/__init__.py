"""The process runtime: pods as processes of this machine."""
