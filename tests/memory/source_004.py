"""The memories of the source, as it writes them (source 004, §2.3), and which of their fields follow from events."""

from __future__ import annotations

from ledger.event import JsonObject

SEMANTIC: JsonObject = {
    "id": "mem_xxx",
    "type": "semantic",
    "category": "user_preference",
    "content": "用户偏好使用 TypeScript + React 技术栈",
    "confidence": 0.95,
    "evidence_count": 12,
    "first_observed": "2026-01-15T10:00:00Z",
    "last_confirmed": "2026-02-18T08:00:00Z",
    "related_memories": ["mem_yyy", "mem_zzz"],
    "tags": ["tech_stack", "preference"],
}
EPISODIC: JsonObject = {
    "id": "ep_xxx",
    "type": "episodic",
    "event": "用户报告了登录页面的 CSS 布局问题",
    "context": {
        "session_id": "sess_123",
        "participants": ["user_abc", "agent_frontend"],
        "outcome": "修复了 flex 布局导致的按钮错位",
        "artifacts": ["fix_commit_sha"],
    },
    "timestamp": "2026-02-17T14:30:00Z",
    "importance": 0.7,
}
PROCEDURAL: JsonObject = {
    "id": "proc_xxx",
    "type": "procedural",
    "name": "用户偏好的代码审查流程",
    "trigger": "当用户请求代码审查时",
    "steps": [
        "1. 先检查代码风格和命名规范",
        "2. 重点关注安全漏洞 (SQL注入、XSS)",
        "3. 检查错误处理是否完善",
        "4. 最后给出改进建议，不要直接修改",
    ],
    "success_rate": 0.92,
    "usage_count": 15,
    "last_updated": "2026-02-18T10:00:00Z",
}
MEMORIES = (SEMANTIC, EPISODIC, PROCEDURAL)
FOLLOWS = {"evidence_count", "first_observed", "last_confirmed", "success_rate", "usage_count", "last_updated"}
"""What a ledger counts itself."""
