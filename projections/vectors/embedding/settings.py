"""Settings of the embedding model, from the environment: an OpenAI-compatible endpoint, or none.

KLEDGER_EMBEDDING_MODEL and KLEDGER_EMBEDDING_DIMENSIONS name the model; KLEDGER_EMBEDDING_URL its endpoint (by
default OpenAI's); the key is KLEDGER_EMBEDDING_KEY or OPENAI_API_KEY. Without a model the vectors are hashed
n-grams, which match words and similar spellings, not paraphrases.
"""

from __future__ import annotations

from pydantic import AliasChoices, Field, SecretStr
from pydantic_settings import SettingsConfigDict

from ledger.runtime.settings import EnvironmentSettings, HttpAddress, settings_of
from projections.vectors.wire import EmbeddingModel


class _Environment(EnvironmentSettings):
    model_config = SettingsConfigDict(env_prefix="KLEDGER_EMBEDDING_", allow_inf_nan=False)

    model: str = ""
    """The model; without one vectors are made of the words alone."""
    dimensions: int = Field(default=1536, ge=1, le=65_536)
    """Of its vectors."""
    url: HttpAddress = "https://api.openai.com/v1"
    """The endpoint."""
    key: SecretStr = Field(
        default=SecretStr(""), validation_alias=AliasChoices("KLEDGER_EMBEDDING_KEY", "OPENAI_API_KEY")
    )
    """Its key; without it that of OPENAI_API_KEY."""
    shorten: bool = False
    """Whether the endpoint is asked for this many dimensions."""
    deadline: float = Field(default=0.3, gt=0, le=60)
    """Seconds that a search waits for the vector of its question."""


def embedding_from_environment() -> EmbeddingModel | None:
    """The configured model, or None. Raises InvalidPayload for a setting that makes no sense."""
    environment = settings_of(_Environment)
    if not environment.model:
        return None
    return EmbeddingModel(
        base_url=environment.url,
        api_key=environment.key.get_secret_value() or "none",
        model=environment.model,
        dimensions=environment.dimensions,
        shorten=environment.shorten,
        deadline=environment.deadline,
    )
