"""A record that many machines share, beside Procrastinate alone on the same PostgreSQL."""
