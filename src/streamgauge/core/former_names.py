"""Names that earlier versions wrote to files. Readers of files take them for the names of today."""

from typing import Annotated, Any

from pydantic import BeforeValidator

_TRANSPORTS = {"flight": "memory"}


def present_transport(name: Any) -> Any:
    """A transport's name of today. Any other value is left to validation."""
    return _TRANSPORTS.get(name, name) if isinstance(name, str) else name


def with_present_names(experiment: Any) -> Any:
    """The stored settings of an experiment with the names of today. What is no table is left to validation."""
    if not isinstance(experiment, dict) or "transport" not in experiment:
        return experiment
    return {**experiment, "transport": present_transport(experiment["transport"])}


TransportName = Annotated[str, BeforeValidator(present_transport)]
