"""The frameworks that train a network: one package each, and only they import their framework."""
