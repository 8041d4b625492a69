"""The driver's side of the synthetic engine: starts its process, requests status and planted faults, stops it."""

import pickle
from pathlib import Path
from typing import Any

from streamgauge.core.errors import EngineError, is_full
from streamgauge.core.plugin_options import with_defaults
from streamgauge.dataflow.nodes import Flow
from streamgauge.engines.held_engine import HeldEngine
from streamgauge.engines.spi import Edges, EngineStatus
from streamgauge.engines.synthetic.main import SyntheticJob
from streamgauge.engines.synthetic.options import SETTINGS
from streamgauge.system.child_processes import Child, ChildFailed
from streamgauge.system.disk import Scratch

START_TIMEOUT_S = 60.0


class SyntheticEngine(HeldEngine):
    """One start of the synthetic engine for one flow. The driver observes its batches and counts its rows."""

    stop_s = 1.0

    def start(self, flow: Flow, edges: Edges, options: dict[str, str], master: str | None, folder: Path) -> None:
        """Starts the process."""
        self._settings = with_defaults(options, SETTINGS)
        folder.mkdir(parents=True, exist_ok=True)
        log = folder / "known.log"
        with Scratch("known") as private:
            path = Path(private) / "job.pkl"
            path.write_bytes(pickle.dumps(SyntheticJob(flow, edges, options, self._parallelism or 1)))
            self._child = Child(
                "known", "streamgauge.engines.synthetic.main", [str(path)], log, self._cpus, {"OMP_NUM_THREADS": "1"}
            )
            try:
                self._child.ask("start", START_TIMEOUT_S)
            except ChildFailed as error:
                raise EngineError(f"known did not start: {error}", str(log)) from None

    def status(self) -> EngineStatus:
        assert self._child is not None
        if not self._child.alive:
            return EngineStatus(False, f"the synthetic engine's process ended (exit code {self._child.exit_code})")
        try:
            return EngineStatus(**self._child.ask("status", 20.0))
        except ChildFailed as error:
            return EngineStatus(False, str(error), disk_full=is_full(error))

    def pids(self) -> list[int]:
        return [self._child.pid] if self._child is not None and self._child.alive else []

    def facts(self) -> dict[str, Any]:
        """`planted_us`: event time of each planted fault; `held`: whether rows are held back."""
        assert self._child is not None
        return dict(self._child.ask("facts", 20.0))
