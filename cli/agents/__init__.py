"""An agent is told what a person is told, and trains within its budget alone.

`tools` are what it can ask, `training` runs studies within a budget, `server` offers both by the Model
Context Protocol, and `command` starts it.
"""
