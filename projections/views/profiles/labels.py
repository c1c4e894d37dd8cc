"""Labels of a memory's fields in a prompt, in the language of its reader. What people wrote stays as they wrote it."""

from __future__ import annotations

from typing import Final

from kledger.contract.language import Language

CHINESE: Final[dict[str, str]] = {
    "user memory": "用户记忆",
    "work memory": "工作记忆",
    "nothing yet": "暂无",
    "entry": "条目",
    "every day": "每天",
    "yes": "是",
    "no": "否",
    "confidence": "置信度",
    "source": "来源",
    "updated": "更新于",
    "occupation": "职业",
    "timezone": "时区",
    "primary_language": "主要语言",
    "people": "人际关系",
    "name": "名称",
    "relationship": "关系",
    "role": "角色",
    "preferred_contact_channel": "首选联系方式",
    "notes": "备注",
    "meta": "来源信息",
    "last_updated_at": "更新时间",
    "places": "地点",
    "category": "类别",
    "address": "地址",
    "commute_minutes": "通勤分钟数",
    "preference": "喜好",
    "preferences": "偏好",
    "communication_style": "沟通风格",
    "language_preference": "语言偏好",
    "location_preference": "地点偏好",
    "work_lifestyle": "工作与生活方式",
    "notification_preference": "通知偏好",
    "scheduling_preferences": "日程偏好",
    "weekdays": "星期",
    "start": "开始",
    "end": "结束",
    "productive_windows": "高效时段",
    "preferred_meeting_windows": "首选会议时段",
    "no_meeting_windows": "不开会时段",
    "deep_work_windows": "深度工作时段",
    "preferred_meeting_duration_minutes": "首选会议时长（分钟）",
    "meeting_buffer_minutes": "会议间隔（分钟）",
    "max_meetings_per_day": "每天最多会议数",
    "interests": "兴趣",
    "avoid_topics": "回避的话题",
    "custom_rules": "自定义规则",
    "recurring_routines": "日常习惯",
    "description": "描述",
    "cadence": "频率",
    "time_windows": "时段",
    "importance": "重要性",
    "expertise": "专长",
    "preferred_tools": "常用工具",
    "current_projects": "当前项目",
    "status": "状态",
    "priority": "优先级",
    "deadline": "截止日期",
    "collaborators": "协作者",
    "key_milestones": "关键里程碑",
    "due_date": "到期日",
    "work_habits": "工作习惯",
    "available_hours": "可用时间",
    "deep_work_blocks": "深度工作时段",
    "notification_channel": "通知渠道",
    "team_members": "团队成员",
    "team_context": "团队背景",
    "work_rules": "工作规则",
}
"""The Chinese of our own words and of the schema's; in English a field is its name in words."""

_VALUES: Final[dict[tuple[str, str], dict[str, str]]] = {
    ("places", "preference"): {"like": "喜欢", "neutral": "一般", "avoid": "避开"},
    ("current_projects", "status"): {
        "planned": "计划中",
        "active": "进行中",
        "paused": "已暂停",
        "completed": "已完成",
    },
}
"""The Chinese of values of which the schema lists the words, by the list whose entry has the field."""


def said_value(entries: str, field: str, value: str, language: Language) -> str:
    """The value of a field of an entry of this list, where the schema lists its words; else as people wrote it."""
    return _VALUES.get((entries, field), {}).get(value, value) if language == "zh" else value


def label(name: str, language: Language) -> str:
    """A field, or a word of ours, for a reader; a name that the schema does not have is as it is written."""
    said = CHINESE.get(name) if language == "zh" else None
    return said or name.replace("_", " ")
