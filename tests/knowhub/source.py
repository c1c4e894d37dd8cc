"""What source 001 says of the tools and the endpoints: signatures, bodies and answers, as written there."""

from __future__ import annotations

from typing import Any

from ledger.event import JsonObject

NEEDED = "no default"
TOOLS: dict[str, dict[str, Any]] = {
    "knowledge_search": {"query": NEEDED, "top_k": 5, "min_score": 3, "types": None},
    "knowledge_save": {
        "task": NEEDED,
        "content": NEEDED,
        "types": NEEDED,
        "tags": None,
        "scopes": None,
        "owner": None,
        "source_name": "",
        "source_category": "exp",
        "urls": None,
        "agent_id": "research_agent",
        "submitted_by": "",
        "score": 3,
        "message_id": "",
    },
    "knowledge_update": {
        "knowledge_id": NEEDED,
        "add_helpful_case": None,
        "add_harmful_case": None,
        "update_score": None,
        "evolve_feedback": None,
    },
    "knowledge_batch_update": {"feedback_list": NEEDED},
    "knowledge_list": {"limit": 10, "types": None, "scopes": None},
    "knowledge_slim": {"model": "google/gemini-2.0-flash-001"},
}
NAMED_ONLY = ("resource_save", "resource_get", "goal_focus", "knowledge_startup")
"""Tools that the source names, or whose trigger it names, and gives no signature of."""
OF_ITEMS = ("knowledge_read", "knowledge_revise", "knowledge_retire", "knowledge_lineage", "knowledge_extract")
OF_PROFILES = ("profile_read", "profile_update")
"""Tools for what the sources let an owner, a person or a model do, and name no tool of."""
OF_SESSIONS = ("session_append", "session_context", "session_expand", "session_scratchpad")
OF_MEMORIES = (
    *("memory_recall", "memory_save", "memory_confirm", "memory_list", "memory_review"),
    *("memory_held", "memory_held_decide", "memory_health"),
)
"""Tools for the memory of source 004, which names none."""

ITEM: JsonObject = {  # POST /api/knowledge
    "task": "在什么场景下要完成什么目标",
    "content": "核心知识内容",
    "types": ["tool", "strategy"],
    "tags": {"category": "preference", "domain": "coding_style"},
    "scopes": ["org:cybertogether"],
    "owner": "agent:research_agent",
    "source": {
        "name": "资源名称",
        "category": "exp",
        "urls": ["https://example.com"],
        "agent_id": "research_agent",
        "submitted_by": "user@example.com",
        "message_id": "msg-xxx",
    },
    "score": 4,
}
HELPFUL: JsonObject = {"task": "任务描述", "outcome": "成功", "timestamp": "2026-03-05T12:00:00Z"}
HARMFUL: JsonObject = {
    "task": "任务描述",
    "outcome": "失败",
    "reason": "原因",
    "timestamp": "2026-03-05T12:00:00Z",
}
UPDATE: JsonObject = {  # PUT /api/knowledge/{id}, but for evolve_feedback, which is a model's work
    "add_helpful_case": HELPFUL,
    "add_harmful_case": HARMFUL,
    "update_score": 4,
}
EVOLVE: JsonObject = {"evolve_feedback": "改进建议(触发知识进化)"}
SLIM: JsonObject = {"model": "google/gemini-2.0-flash-001"}


def verdicts(knowledge_id: str) -> JsonObject:
    """POST /api/knowledge/batch_update."""
    return {"feedback_list": [{"knowledge_id": knowledge_id, "is_helpful": True, "case": HELPFUL}]}


ANSWERED_ITEM = {"id", "task", "content", "types", "tags", "eval", "quality_score"}
ANSWERED_EVAL = {"score", "helpful", "harmful", "confidence"}
WHOLE_ITEM = {
    *("id", "types", "task", "tags", "scopes", "owner", "content", "resource_ids", "source", "eval"),
    *("created_at", "updated_at"),
}
WHOLE_SOURCE = {"name", "category", "urls", "agent_id", "submitted_by", "message_id"}
WHOLE_EVAL = {*ANSWERED_EVAL, "helpful_history", "harmful_history"}

RESOURCES: dict[str, JsonObject] = {  # the four scenes of the source
    "code/selenium/undetected_login": {
        "id": "code/selenium/undetected_login",
        "title": "Selenium 绕过检测登录代码",
        "body": "import undetected_chromedriver as uc\n\ndriver = uc.Chrome()...",
        "content_type": "code",
        "metadata": {"language": "python"},
    },
    "credentials/website_a": {
        "id": "credentials/website_a",
        "title": "某网站测试账号",
        "body": "使用方法:直接登录即可,每天限额 100 次",
        "secure_body": "账号:user@example.com\n密码:SecurePass123",
        "content_type": "credential",
        "metadata": {"acquired_at": "2026-03-06T10:00:00Z"},
    },
    "cookies/website_a": {
        "id": "cookies/website_a",
        "title": "某网站 Cookie",
        "body": "适用于:已登录状态的 API 调用",
        "secure_body": "session_id=abc123; auth_token=xyz789",
        "content_type": "cookie",
        "metadata": {"acquired_at": "2026-03-06T10:00:00Z", "expires_at": "2026-03-07T10:00:00Z"},
    },
}
REFERRING: tuple[JsonObject, ...] = (
    {
        "task": "使用 Selenium 登录某网站并绕过反爬检测",
        "content": "使用 undetected_chromedriver 可以绕过大部分检测。"
        "关键点:1) 设置合适的 user-agent 2) 随机延迟 3) 避免频繁请求",
        "types": ["tool", "strategy"],
        "resource_ids": ["code/selenium/undetected_login"],
    },
    {
        "task": "登录某网站进行数据采集",
        "content": "使用测试账号登录,注意:1) 每天限额 100 次 2) 需要在工作时间访问 3) 登录后 session 有效期 2 小时",
        "types": ["tool", "usecase"],
        "resource_ids": ["credentials/website_a"],
    },
    {
        "task": "使用已登录的 Cookie 访问某网站 API",
        "content": "Cookie 获取方法:手动登录后从浏览器导出。使用时直接设置到请求头。注意检查过期时间。",
        "types": ["tool"],
        "resource_ids": ["cookies/website_a"],
    },
    {
        "task": "使用 Selenium 登录某网站",
        "content": "使用 undetected_chromedriver 绕过检测,配合测试账号登录",
        "types": ["tool", "usecase"],
        "resource_ids": ["code/selenium/undetected_login", "credentials/website_a"],
    },
)
