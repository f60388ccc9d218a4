"""The record in SQL, whatever the database: its rows, what changes them, and what reads them."""
