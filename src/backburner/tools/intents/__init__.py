"""Short messages about background work, understood by plain rules: no model, no guess."""
