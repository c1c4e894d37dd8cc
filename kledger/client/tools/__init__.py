"""An agent's tools: functions, their arguments and defaults."""
