"""Tables and views of processes: evolutions, extractions, slims, conflicts, model usage.

The data of a stage is stored as JSON, by the name of the stage; the views make columns of it. What occurs many times
(the groups of a slim, the usage of a model) is read from `events`.
"""

TABLES = """
CREATE TABLE processes (
    org VARCHAR NOT NULL, kind VARCHAR NOT NULL, id VARCHAR NOT NULL, owner VARCHAR NOT NULL,
    stage VARCHAR NOT NULL, outcome VARCHAR, outcome_position BIGINT, said JSON NOT NULL,
    requested_position BIGINT NOT NULL, requested_event VARCHAR NOT NULL, requested_at TIMESTAMPTZ NOT NULL,
    position BIGINT NOT NULL, updated_at TIMESTAMPTZ NOT NULL
);
COMMENT ON TABLE processes IS 'Evolutions, extractions, slims and conflicts: how far each is, and what it said';
COMMENT ON COLUMN processes.stage IS 'The last stage that the process itself stated';
COMMENT ON COLUMN processes.outcome IS 'applied or reverted, where the item of an evolution says so';
COMMENT ON COLUMN processes.said IS 'The data of each stage, by its name';
CREATE VIEW evolutions AS
    SELECT org, id, said->'requested'->>'item_id' AS item_id,
        (said->'requested'->>'base_version')::BIGINT AS base_version,
        coalesce(outcome, stage) AS status, owner, said->'requested'->>'feedback' AS feedback,
        (said->'requested'->>'apply')::BOOLEAN AS apply,
        said->'proposed'->>'content' AS content, said->'proposed'->>'task' AS task,
        coalesce(said->'failed'->>'reason', said->'rejected'->>'reason', said->'proposed'->>'reason') AS reason,
        said->'failed'->>'code' AS code,
        said->'proposed'->'usage'->>'model' AS model,
        said->'proposed'->'usage'->>'prompt_version' AS prompt_version,
        requested_event, requested_at, updated_at, requested_position, position, outcome_position
    FROM processes WHERE kind = 'evolution';
COMMENT ON VIEW evolutions IS 'How items came to be rewritten by a model: asked for, proposed, applied, reverted';
CREATE VIEW extractions AS
    SELECT org, id, stage AS status, owner, said->'requested'->>'kind' AS kind,
        from_json(said->'requested'->'scopes', '["VARCHAR"]') AS scopes,
        said->'requested'->'messages' AS messages, said->'completed'->'items' AS items,
        said->'failed'->>'code' AS code, said->'failed'->>'reason' AS reason,
        said->'completed'->'usage'->>'model' AS model,
        said->'completed'->'usage'->>'prompt_version' AS prompt_version,
        requested_event, requested_at, updated_at, requested_position, position
    FROM processes WHERE kind = 'extraction';
COMMENT ON VIEW extractions IS 'Which knowledge was drawn from what was said or done';
CREATE VIEW slims AS
    SELECT org, id, stage AS status, owner, from_json(said->'requested'->'scopes', '["VARCHAR"]') AS scopes,
        said->'requested'->>'model' AS model, (said->'requested'->>'threshold')::DOUBLE AS threshold,
        (said->'requested'->>'apply')::BOOLEAN AS apply,
        (said->'reported'->>'candidates')::BIGINT AS candidates, (said->'reported'->>'groups')::BIGINT AS groups,
        (said->'reported'->>'items')::BIGINT AS items, (said->'reported'->>'seconds')::DOUBLE AS seconds,
        coalesce(said->'reverted'->'skipped', said->'applied'->'skipped') AS skipped,
        said->'failed'->>'code' AS code,
        coalesce(said->'failed'->>'reason', said->'rejected'->>'reason') AS reason,
        requested_event, requested_at, updated_at, requested_position, position
    FROM processes WHERE kind = 'slim';
COMMENT ON VIEW slims IS 'How bodies of knowledge were slimmed: asked for, proposed, applied, reverted';
CREATE VIEW slim_groups AS
    SELECT org, entity_id AS slim, (data->>'group')::BIGINT AS group_number, data->>'survivor' AS survivor,
        (data->>'survivor_version')::BIGINT AS survivor_version, data->'merged' AS merged,
        from_json(data->'types', '["VARCHAR"]') AS types, data->>'task' AS task, data->>'content' AS content,
        data->'tags' AS tags, data->'usage'->>'model' AS model, position, stream_time AS time
    FROM events WHERE type = 'slim.proposed';
COMMENT ON VIEW slim_groups IS 'The groups of each slim: who survives, who is merged into it';
CREATE VIEW conflicts AS
    SELECT org, id, stage AS status, owner, said->'recorded'->>'first' AS first,
        (said->'recorded'->>'first_version')::BIGINT AS first_version, said->'recorded'->>'second' AS second,
        (said->'recorded'->>'second_version')::BIGINT AS second_version, said->'recorded'->>'reason' AS reason,
        said->'recorded'->>'extraction' AS extraction, said->'resolved'->>'winner' AS winner,
        said->'resolved'->>'reason' AS decision, requested_at AS recorded_at, updated_at, requested_position, position
    FROM processes WHERE kind = 'conflict';
COMMENT ON VIEW conflicts IS 'Items that contradict each other: both sides, and what was decided';
CREATE VIEW held_statements AS
    SELECT org, id, stage AS status, owner, said->'held'->>'item_id' AS item_id,
        (said->'held'->>'retired_at')::BIGINT AS retired_at, said->'held'->'statement'->>'id' AS knowledge_id,
        from_json(said->'held'->'scopes', '["VARCHAR"]') AS scopes, said->'held'->'statement' AS statement,
        coalesce(said->'released'->>'by', said->'dropped'->>'by') AS decided_by,
        coalesce(said->'released'->>'reason', said->'dropped'->>'reason') AS decision,
        requested_at AS held_at, updated_at, requested_position, position
    FROM processes WHERE kind = 'statement';
COMMENT ON VIEW held_statements IS 'What was said again although a person had retired or corrected it';
COMMENT ON COLUMN held_statements.status IS 'held, released (it was saved) or dropped';
COMMENT ON COLUMN held_statements.item_id IS 'The item that a person retired or corrected';
COMMENT ON COLUMN held_statements.knowledge_id IS 'The id of what a release saves; null when it was erased';
CREATE VIEW model_usage AS
    SELECT position, stream_time AS time, org,
        CASE WHEN type = 'model.used' THEN data->>'kind' ELSE entity END AS kind,
        CASE WHEN type = 'model.used' THEN data->>'process' ELSE entity_id END AS id,
        CASE WHEN type = 'model.used' THEN data->>'asked_by' ELSE actor END AS actor,
        trace_id, data->'usage'->>'model' AS model, data->'usage'->>'prompt_version' AS prompt_version,
        (data->'usage'->>'input_tokens')::BIGINT AS input_tokens,
        (data->'usage'->>'output_tokens')::BIGINT AS output_tokens,
        (data->'usage'->>'cost_usd')::DOUBLE AS cost_usd, (data->'usage'->>'calls')::BIGINT AS calls,
        CASE WHEN type = 'model.used' THEN 'node' ELSE 'actor' END AS stated_by
    FROM events
    WHERE type = 'model.used' OR (
        type IN ('evolution.proposed', 'evolution.failed', 'extraction.completed', 'extraction.failed',
            'slim.proposed', 'slim.failed')
        AND (data->'usage'->>'model') IS NOT NULL
        AND position < coalesce((SELECT min(position) FROM events WHERE type = 'model.used'), 9223372036854775807)
    );
COMMENT ON COLUMN slims.seconds IS 'As the stage says it, which is stated in the owner''s name';
COMMENT ON VIEW model_usage IS 'What each answer of a model cost: tokens, calls, and dollars where a price is known';
COMMENT ON COLUMN model_usage.actor IS 'For whom the model was asked';
COMMENT ON COLUMN model_usage.stated_by IS
    'node: by the node that asked. actor: in the actor''s name, before nodes said it apart; a publisher can claim that';
"""
