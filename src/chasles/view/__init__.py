"""A viewer that shows robots in a browser, plays motions and records videos.

The viewer needs the packages viser and trimesh (`pip install 'chasles[view]'`), which are imported
when needed.
"""

from chasles.view.video import record
from chasles.view.viewer import Viewer, show

__all__ = ["Viewer", "record", "show"]
