"""From the plane of the made map back to degrees: what only tests ask for."""

from streamgauge.core.arrays import Floats
from streamgauge.loadgen.datasets.gps_traces import BOX, METRES_NORTH


def to_degrees(east: Floats, north: Floats) -> tuple[Floats, Floats]:
    """(latitude, longitude) of a place in the plane."""
    return BOX.south + north / METRES_NORTH, BOX.west + east / BOX.metres_east
