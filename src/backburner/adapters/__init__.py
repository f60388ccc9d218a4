"""The tools of a session for the frameworks that agents are written with: one module each.

Every module has `tools(session, dialect=None)`, and needs nothing but its framework, which whoever
uses it has. It translates: what a tool is called, what it takes and what it answers comes from
`session.toolset()`, and an error is told to the model in the framework's own way.
"""
