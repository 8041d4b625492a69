"""The options that a run has: those of its tuning profile, and over them those that the user gave."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from streamgauge.config.options_and_settings import Experiment
from streamgauge.core.errors import Problem
from streamgauge.core.plugin_options import TUNED
from streamgauge.engines.spi import Capabilities, TuningProfile

_EMPTY = TuningProfile()


def engine_options(experiment: Experiment, engine: Capabilities | None) -> dict[str, str]:
    """The engine's options; without an engine that is known, only the user's."""
    return {**_profile(experiment, engine).options, **experiment.options}


def transport_options(experiment: Experiment, engine: Capabilities) -> dict[str, str]:
    """The transport's options: where neither the user nor the profile says anything, the engine's own."""
    by_profile = _profile(experiment, engine).transport_options.get(experiment.transport, {})
    return {**engine.transport_options, **by_profile, **experiment.transport_options}


def tuning_problems(experiment: Experiment, engine: Capabilities, engines_with_it: Sequence[str]) -> Iterator[Problem]:
    """A profile that the engine does not have; `engines_with_it` names those that do."""
    if experiment.tuning in engine.profiles:
        return
    rule = f"must be {' or '.join(engine.profiles)}: {engine.name} has no other tuning profile"
    others = f", or --engine {engines_with_it[0]}" if engines_with_it else ""
    yield Problem("tuning", rule, experiment.tuning, f"--tuning {TUNED}{others}")


def _profile(experiment: Experiment, engine: Capabilities | None) -> TuningProfile:
    return engine.profiles.get(experiment.tuning, _EMPTY) if engine is not None else _EMPTY
