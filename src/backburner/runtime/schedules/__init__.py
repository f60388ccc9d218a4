"""Work that starts by the clock: the calendar, what is due, who fires it, what callers can do."""
