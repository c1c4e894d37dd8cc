"""Settings of the chat models, from the environment: endpoint, models, prices and budget.

KLEDGER_MODEL names the model, KLEDGER_MODEL_<TASK> (ModelTask) another one for a task. Tasks that a recall waits for
(OWN_MODEL) have a model only where their own setting names one: a small one that answers within its deadline.
KLEDGER_ROUTING=on lets the routing model choose in every search that does not set it otherwise.
KLEDGER_MODEL_URL is an OpenAI-compatible endpoint (by default OpenAI's), the key KLEDGER_MODEL_KEY or OPENAI_API_KEY.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal, NamedTuple, get_args

from pydantic import AliasChoices, Field, SecretStr
from pydantic_settings import SettingsConfigDict

from kledger.contract.errors import NotAvailable
from kledger.contract.words import ModelTask
from ledger.runtime.settings import EnvironmentSettings, HttpAddress, settings_of

TASKS: Final[tuple[ModelTask, ...]] = get_args(ModelTask)
OWN_MODEL: Final[frozenset[ModelTask]] = frozenset({"intent", "rewrite", "hyde"})
"""Tasks that KLEDGER_MODEL does not give a model: they are asked in recalls, which nobody set it for."""


def setting_of(task: ModelTask) -> str:
    """The environment variable that names the model of a task."""
    return f"KLEDGER_MODEL_{task.upper()}"


class Price(NamedTuple):
    """US dollars for a million tokens."""

    input: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    output: Annotated[float, Field(ge=0, allow_inf_nan=False)]


class ModelSettings(EnvironmentSettings):
    """The settings in the environment; `timeout` is in seconds for each request, `budget_usd` for a day in UTC.

    `idempotent` declares that the endpoint bills an Idempotency-Key once, however often it is sent.
    """

    model_config = SettingsConfigDict(
        env_prefix="KLEDGER_MODEL_", frozen=True, populate_by_name=True, allow_inf_nan=False
    )

    url: HttpAddress = "https://api.openai.com/v1"
    """The endpoint, which speaks OpenAI's chat completions API."""
    key: SecretStr = Field(default=SecretStr(""), validation_alias=AliasChoices("KLEDGER_MODEL_KEY", "OPENAI_API_KEY"))
    """Its key; without it that of OPENAI_API_KEY."""
    model: str = Field(default="", validation_alias="KLEDGER_MODEL")
    """The model for every task but the three of a recall."""
    evolve: str = ""
    """Rewrites an item by feedback."""
    extract: str = ""
    """Finds knowledge in what was said."""
    slim: str = ""
    """Merges near-duplicates."""
    summarise: str = ""
    """Sums up sessions and documents."""
    route: str = ""
    """Chooses before a search ranks."""
    intent: str = ""
    """Tells what a message is after."""
    rewrite: str = ""
    """Puts a question in other queries."""
    hyde: str = ""
    """Writes a possible answer, whose vector searches."""
    timeout: float = Field(default=60.0, gt=0)
    """Seconds a request."""
    retries: int = Field(default=3, ge=0, le=20)
    """How often a call is made again that was not done."""
    concurrency: int = Field(default=4, ge=1, le=1_000)
    """Calls at once, a node."""
    budget_usd: float | None = Field(default=None, ge=0)
    """Dollars a day, in UTC, all nodes together."""
    prices: dict[str, Price] = Field(default={})
    """Dollars for a million tokens by model: input, output."""
    idempotent: bool = False
    """The endpoint bills one Idempotency-Key once."""
    routing: Literal["off", "on"] = Field(default="off", validation_alias="KLEDGER_ROUTING")
    """Whether a model chooses in every search that does not say otherwise."""

    def named(self) -> frozenset[str]:
        """All models that the settings name."""
        return frozenset({self.model, *(self._own(task) for task in TASKS)} - {""})

    def _own(self, task: ModelTask) -> str:
        return str(getattr(self, task))

    def chosen(self, task: ModelTask) -> str:
        """The model that the settings name for a task; empty where they name none."""
        return self._own(task) or ("" if task in OWN_MODEL else self.model)

    def has(self, task: ModelTask) -> bool:
        """Whether there is a model for a task that may be asked."""
        try:
            self.model_for(task)
        except NotAvailable:
            return False
        return True

    def model_for(self, task: ModelTask, requested: str | None = None) -> str:
        """The model for a task: the requested one, else the task's own, else the default.

        Raises NotAvailable when none is configured, or when a budget is set that its unknown price could break.
        """
        chosen = self.chosen(task)
        if not chosen and task in OWN_MODEL:
            raise NotAvailable(f"no model is configured for {task}: set {setting_of(task)} where the node runs")
        if not chosen:
            raise NotAvailable(
                f"to {task} is a model's work, and none is configured: set KLEDGER_MODEL (and KLEDGER_MODEL_URL, "
                "KLEDGER_MODEL_KEY) where the node runs"
            )
        chosen = requested or chosen
        if self.budget_usd is not None and chosen not in self.prices:
            raise NotAvailable(
                f"the model {chosen!r} has no price in KLEDGER_MODEL_PRICES, and without one the budget a day "
                "cannot be kept: add its price, or choose another model"
            )
        return chosen


def model_settings_from_environment() -> ModelSettings:
    """Load the settings. Raises InvalidPayload for an invalid one."""
    return settings_of(ModelSettings)
