"""Settings of the reranker, from the environment: an endpoint with `POST /rerank`, or none.

KLEDGER_RERANK_URL is the endpoint, with or without `/rerank` at its end; KLEDGER_RERANK_MODEL the model, which some
endpoints need; KLEDGER_RERANK_KEY its key; KLEDGER_RERANK_DEADLINE how many seconds a recall waits for it.
"""

from __future__ import annotations

from pydantic import Field, SecretStr
from pydantic_settings import SettingsConfigDict

from ledger.runtime.settings import EnvironmentSettings, HttpAddress, settings_of


class RerankSettings(EnvironmentSettings):
    """The settings in the environment; without `url` there is no reranker."""

    model_config = SettingsConfigDict(env_prefix="KLEDGER_RERANK_", frozen=True, allow_inf_nan=False)

    url: HttpAddress = ""
    """An endpoint with `POST /rerank`."""
    model: str = ""
    """The model, which TEI needs no name of."""
    key: SecretStr = SecretStr("")
    """Its key."""
    deadline: float = Field(default=1.0, gt=0, le=60)
    """Seconds that a recall waits for it."""

    @property
    def address(self) -> str:
        """Where requests go."""
        url = self.url.rstrip("/")
        return url if url.endswith("/rerank") else f"{url}/rerank"

    @property
    def name(self) -> str:
        """How messages speak of it, without address and key."""
        return f"the reranker {self.model}" if self.model else "the reranker"


def rerank_settings_from_environment() -> RerankSettings | None:
    """The configured reranker, or None. Raises InvalidPayload for a setting that makes no sense."""
    settings = settings_of(RerankSettings)
    return settings if settings.url else None
