"""What makes controllers run: cache, queue, reconcile loop, executor, leadership, metrics."""
