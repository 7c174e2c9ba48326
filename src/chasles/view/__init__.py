"""Robots in a browser: drawing, moving joints, playing motions, and recording videos.

The packages viser and trimesh are needed (`pip install 'chasles[view]'`), and are loaded on use.
"""

from chasles.view.video import record
from chasles.view.viewer import Viewer, show

__all__ = ["Viewer", "record", "show"]
