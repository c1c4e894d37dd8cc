"""How long a test waits for what has to come."""

from __future__ import annotations

PATIENCE = 300.0
"""Seconds. Far longer than a machine takes that is busy with other work: who waits in vain has found a defect."""
