"""Ids and texts that the examples of several families of events share; each example stands beside its event's class."""

from __future__ import annotations

AUTHOR = "agent:research_agent"
USER = "user:li.wei@example.com"
ITEM = "knowledge-20260305-a1b2"
OTHER = "knowledge-20260305-d5e6"
RESOURCE = "credentials/website_a"
RECALL = "recall-20260305-c3d4"
EVOLUTION = "evolution-20260305-e5f6"
EXTRACTION = "extraction-20260305-a7b8"
SLIM = "slim-20260305-e1f2"
CONFLICT = "conflict-20260305-b3c4"
TASK = "运行单元测试前需要准备数据库"
MESSAGE = "msg-0042"
SUMMARY = "summary-20260305-d7e8"
SESSION = "sess-20260305"
TRACE = "trace-7f3a"
