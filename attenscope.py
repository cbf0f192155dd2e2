"""The name ``attenscope`` in the checkout: ``model/`` is its package, ``viz/`` and ``checkpoints/`` are parts of it.

The wheel holds the same folders under that name, file by file, so that what is installed is what was tested. Here
``model.translate`` is another name of the same module as ``attenscope.translate``: a class has one identity.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import InspectLoader, Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec, module_from_spec, spec_from_file_location, spec_from_loader
from pathlib import Path
from types import CodeType, ModuleType

ROOT = Path(__file__).parent


class FolderName(MetaPathFinder, Loader):
    """Finds the modules of ``model`` under their one name."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        return spec_from_loader(fullname, self) if f"{fullname}.".startswith("model.") else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = import_module(f"attenscope{spec.name.removeprefix('model')}")
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Nothing runs again; the import has put its own specification in the place of the module's."""
        assert module.__spec__ is not None
        module.__spec__ = module.__spec__.loader_state

    def get_code(self, fullname: str) -> CodeType | None:
        """Return what ``python -m model`` runs."""
        spec = find_spec(f"attenscope{fullname.removeprefix('model')}")
        assert spec is not None
        assert isinstance(spec.loader, InspectLoader)
        return spec.loader.get_code(spec.name)


def load_package() -> None:
    """Put the package in the place of this module: what imports the name gets the package."""
    places = [str(ROOT / "model"), str(ROOT)]
    spec = spec_from_file_location("attenscope", ROOT / "model" / "__init__.py", submodule_search_locations=places)
    assert spec is not None
    assert spec.loader is not None
    package = module_from_spec(spec)
    sys.modules["attenscope"] = package
    spec.loader.exec_module(package)
    sys.meta_path.insert(0, FolderName())


load_package()
