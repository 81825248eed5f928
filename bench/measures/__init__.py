"""The measures by name, in the order they run: what reads comes before what writes.

Each takes the run and returns its rows. The targets are those of the issue that asked for the store.
"""

from collections.abc import Callable

from bench.measures.reading import measure_list, measure_load, measure_open, measure_size
from bench.measures.searching import measure_search
from bench.measures.starting import measure_version
from bench.measures.writing import measure_append, measure_concurrent, measure_processes, measure_routing
from bench.report import Row
from bench.run import Run

MEASURES: dict[str, Callable[[Run], list[Row]]] = {
    "version": measure_version,
    "open": measure_open,
    "size": measure_size,
    "search": measure_search,
    "load": measure_load,
    "list": measure_list,
    "append": measure_append,
    "concurrent": measure_concurrent,
    "processes": measure_processes,
    "routing": measure_routing,
}
