"""Names of the environment variables with a machine's settings."""

ENV_PREFIX = "ACTIVEMEM_"
PLUGINS_VARIABLE = ENV_PREFIX + "PLUGINS"
TOKEN_VARIABLE = ENV_PREFIX + "TOKEN"
"""The environment variable with the token of `serve`, which is never written or shown."""
