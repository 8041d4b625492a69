"""The processors of driver and SUT, as sets such as `0`, `1-3` or `0,2-5`."""

from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict

from streamgauge.config.setting_info import ENGINE_UNDER_LOAD, setting
from streamgauge.core.errors import attempt
from streamgauge.core.units import format_cpus, parse_cpus

WAY_OUT = "--driver-cpus 0 and --sut-cpus 1"


def _one_form(text: Any) -> str:
    return format_cpus(parse_cpus(text))


_Set = Annotated[str, BeforeValidator(_one_form, json_schema_input_type=int | str)]
_processors = partial(
    setting, None, metavar="CPUS", only=ENGINE_UNDER_LOAD, default_text="by --isolation",
    group="Engine",
)  # fmt: skip


class Cpus(BaseModel):
    """The section `[cpus]`: the processors of both sides, instead of those by `isolation`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    driver: _Set | None = _processors(help="processors of the driver: 0 or 0,2-3", flag="--driver-cpus", example="0")
    sut: _Set | None = _processors(help="processors of the engine: 1 or 1,4-7", flag="--sut-cpus", example="1")

    @property
    def given(self) -> dict[str, str]:
        """The sets that are given, by side."""
        return {side: cpus for side, cpus in self if cpus is not None}


def are_separate(given: Any) -> bool:
    """Whether the values of a section `[cpus]` are two sets without a common processor; False if one is refused."""
    if not isinstance(given, Mapping):
        return False
    driver, sut = (attempt(partial(parse_cpus, str(given.get(side))), []) for side in Cpus.model_fields)
    return bool(driver and sut) and not set(driver) & set(sut)
