"""How a shared record grows: a model of it, fed by what the real thing costs, and checked by it."""
