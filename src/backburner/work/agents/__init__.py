"""Sub-agents: whatever turns a prompt into an answer."""
