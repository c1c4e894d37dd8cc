"""The tools of an agent under their names, in the order of the MCP list."""

from __future__ import annotations

from kledger.client.faces import Endpoint
from kledger.client.tools.functions import (
    goal_focus,
    knowledge_batch_update,
    knowledge_list,
    knowledge_save,
    knowledge_search,
    knowledge_slim,
    knowledge_startup,
    knowledge_update,
    resource_get,
    resource_save,
)
from kledger.client.tools.items import (
    knowledge_extract,
    knowledge_lineage,
    knowledge_read,
    knowledge_retire,
    knowledge_revise,
)
from kledger.client.tools.memory import (
    memory_confirm,
    memory_health,
    memory_held,
    memory_held_decide,
    memory_list,
    memory_recall,
    memory_review,
    memory_save,
)
from kledger.client.tools.profiles import profile_read, profile_update
from kledger.client.tools.sessions import session_append, session_context, session_expand, session_scratchpad


class ToolEndpoints:
    """The tools of an agent, by the names and defaults that the MCP server gives them too; in the order of its list."""

    knowledge_search = Endpoint(knowledge_search)
    knowledge_save = Endpoint(knowledge_save)
    knowledge_update = Endpoint(knowledge_update)
    knowledge_batch_update = Endpoint(knowledge_batch_update)
    knowledge_list = Endpoint(knowledge_list)
    knowledge_read = Endpoint(knowledge_read)
    knowledge_revise = Endpoint(knowledge_revise)
    knowledge_retire = Endpoint(knowledge_retire)
    knowledge_lineage = Endpoint(knowledge_lineage)
    knowledge_extract = Endpoint(knowledge_extract)
    knowledge_slim = Endpoint(knowledge_slim)
    resource_save = Endpoint(resource_save)
    resource_get = Endpoint(resource_get)
    goal_focus = Endpoint(goal_focus)
    knowledge_startup = Endpoint(knowledge_startup)
    profile_read = Endpoint(profile_read)
    profile_update = Endpoint(profile_update)
    memory_recall = Endpoint(memory_recall)
    memory_save = Endpoint(memory_save)
    session_append = Endpoint(session_append)
    session_context = Endpoint(session_context)
    session_expand = Endpoint(session_expand)
    session_scratchpad = Endpoint(session_scratchpad)
    memory_confirm = Endpoint(memory_confirm)
    memory_list = Endpoint(memory_list)
    memory_review = Endpoint(memory_review)
    memory_held = Endpoint(memory_held)
    memory_held_decide = Endpoint(memory_held_decide)
    memory_health = Endpoint(memory_health)
    get_knowledge = knowledge_search  # the same tool by another name
    save_knowledge = knowledge_save
