"""Work in parts on any `concurrent.futures.Executor`: processes of this machine, or a Dask cluster of many.

A part is a pure function of its arguments, so that it may be done again where a worker was lost, and has numbers of its own,
so that two parts are never one.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, as_completed
from contextlib import contextmanager


@contextmanager
def scheduler(address: str, retries: int = 3) -> Iterator[Executor]:
    """The workers of a running Dask scheduler as an executor.

    They have to have this package, of the same version, and what else the work needs.

    Parameters
    ----------
    address : str
        Such as ``tcp://host:8786``.
    retries : int
        How often a part is tried again that failed; one whose worker was lost is always done again.

    Raises
    ------
    ImportError
        Without the `scale` extra.
    OSError
        If nothing answers there.
    ValueError
        If that is no address.
    """
    from distributed import Client
    from distributed.comm import get_address_host_port

    with socket.create_connection(get_address_host_port(address), timeout=10):  # a client that finds nobody is noisy
        pass
    with Client(address, timeout="10s", set_as_default=False) as client:
        yield client.get_executor(pure=False, retries=retries)


def done(executor: Executor, work: Callable, parts: Iterable[tuple]) -> Iterator[tuple[int, object]]:
    """Number and result of each part as it is finished; the first error ends them all.

    Parameters
    ----------
    work : callable
        A function of a module, that can be pickled by name.
    parts : iterable of tuple
        The arguments of each call.
    """
    waiting = {executor.submit(work, *part): number for number, part in enumerate(parts)}
    try:
        for future in as_completed(waiting):
            yield waiting[future], future.result()
    finally:
        for future in waiting:
            future.cancel()
