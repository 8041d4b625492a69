"""Whether a server can listen at an address; of its own because drivers and clusters of engines both ask."""

import socket


def port_problem(host: str, port: int) -> str:
    """Why no server can listen there; empty if one can."""
    with socket.socket() as probe:
        # Servers bind like this too, so a connection that has just ended does not block the port.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            return error.strerror or str(error)
    return ""
