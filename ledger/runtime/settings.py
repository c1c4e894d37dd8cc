"""Settings from the environment: read whole or refused by the variable's name, and the address of a server among them.

What an address is stands in kledger/contract/addresses.py, which a client loads without pydantic.
"""

from __future__ import annotations

from typing import Annotated, TypeVar

from pydantic import AfterValidator, ValidationError
from pydantic_settings import BaseSettings, EnvSettingsSource, PydanticBaseSettingsSource, SettingsError

from kledger.contract.addresses import NO_ADDRESS, is_http_address
from kledger.contract.errors import InvalidPayload
from kledger.contract.faults import in_plain_words


class EnvironmentSettings(BaseSettings):
    """Settings of the environment alone. A blank variable is not set, and the blanks around a value are not of it.

    A line such as `KLEDGER_LIMIT_RATE=` in a file of variables takes a value away; a file with the line ends of another
    system leaves a mark behind every value, which no address and no key may have.
    """

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],  # noqa: ARG003  # as pydantic calls it
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003  # likewise
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003  # likewise
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        assert isinstance(env_settings, EnvSettingsSource)  # as pydantic makes it
        stated = {name: (value or "").strip() for name, value in env_settings.env_vars.items()}
        env_settings.env_vars = {name: value for name, value in stated.items() if value}
        return init_settings, env_settings


S = TypeVar("S", bound=EnvironmentSettings)


def settings_of(kind: type[S]) -> S:
    """The settings of a class, from the environment. Raises InvalidPayload where one does not fit."""
    prefix = kind.model_config.get("env_prefix") or ""
    try:
        return kind()
    except ValidationError as error:
        errors = []
        for fault in error.errors(include_url=False, include_input=False):
            name = str(fault["loc"][0]) if fault["loc"] else ""
            variable = name if name.isupper() else prefix + name.upper()  # an alias is the variable itself
            errors.append({"field": variable or f"{prefix}*", "reason": in_plain_words(fault)})
        told = "; ".join(f"{each['field']} {each['reason']}" for each in errors)
        raise InvalidPayload(f"a setting does not fit: {told}", errors=errors) from error
    except SettingsError as error:  # of several values, and no JSON
        named = [prefix + name.upper() for name in kind.model_fields if f'"{name}"' in str(error)]
        variable = named[0] if named else f"{prefix}*"
        reason = "is no JSON"
        raise InvalidPayload(
            f"a setting does not fit: {variable} {reason}", errors=[{"field": variable, "reason": reason}]
        ) from error


def _checked(url: str) -> str:
    if url and not is_http_address(url):
        raise ValueError(NO_ADDRESS)
    return url


HttpAddress = Annotated[str, AfterValidator(_checked)]
"""An address in a setting, or nothing."""
