"""Robots in a browser: seen, moved by their joints, played along motions, recorded as videos.

The packages viser and trimesh are needed (`pip install 'chasles[view]'`), and are loaded on use.
"""

from chasles.view.video import record
from chasles.view.viewer import Viewer, show

__all__ = ["Viewer", "record", "show"]
