"""Start-up hook of Python processes under `offprof exec`, which puts this folder on PYTHONPATH.

Python imports `sitecustomize` when it starts. This one runs the user's own, and opens the virtual GPU
just before torch is imported for the first time. A process that never imports torch is not changed,
so this module imports nothing that Python has not loaded already.
"""

import os
import sys

_FOLDER = os.path.dirname(os.path.abspath(__file__))


class _Finder:
    """Finder of torch, which the virtual GPU has to precede, and of offprof itself, whose version has to
    be that of the running program."""

    def __init__(self) -> None:
        self._is_searching = False

    def find_spec(self, name, path=None, target=None):  # type: ignore[no-untyped-def]
        del path, target
        if name == "offprof":
            return self._find_offprof()
        if name == "torch" and not self._is_searching:
            return self._find_torch()
        return None

    def _find_offprof(self):  # type: ignore[no-untyped-def]
        from importlib.util import spec_from_file_location

        package = os.path.dirname(_FOLDER)
        return spec_from_file_location(
            "offprof", os.path.join(package, "__init__.py"), submodule_search_locations=[package]
        )

    def _find_torch(self):  # type: ignore[no-untyped-def]
        from importlib.util import find_spec

        self._is_searching = True  # the search comes here again
        try:
            spec = find_spec("torch")
        finally:
            self._is_searching = False
        if spec is None or spec.loader is None:
            return None
        execute = spec.loader.exec_module

        def open_gpu_and_execute(module):  # type: ignore[no-untyped-def]
            from offprof.exec_process import import_torch

            import_torch(execute, module)

        # Opens nothing yet: many programs only ask whether torch is installed.
        spec.loader.exec_module = open_gpu_and_execute  # type: ignore[method-assign]
        return spec


def _run_users_sitecustomize() -> None:
    """Imports the `sitecustomize` that Python would have imported without this one."""
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry) != _FOLDER]
    ours = sys.modules.pop(__name__)
    try:
        import sitecustomize  # type: ignore[import-not-found] # noqa: F401
    except ModuleNotFoundError as error:
        if error.name != "sitecustomize":
            raise
    finally:
        sys.modules.setdefault(__name__, ours)


sys.meta_path.insert(0, _Finder())
_run_users_sitecustomize()
