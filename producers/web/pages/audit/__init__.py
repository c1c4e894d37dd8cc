"""Audit, for operators: how the node stands, what it signed, proofs, and jobs that check or renew what it serves."""

from __future__ import annotations

from producers.web.pages.audit import jobs, proof, standing

PAGES = (*standing.PAGES, *jobs.PAGES, *proof.PAGES)
