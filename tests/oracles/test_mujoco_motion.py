"""A second of motion against MuJoCo: the same integrators, nothing in contact, nothing limited."""

from typing import Any

import mujoco
import numpy as np
import pytest
from test_mujoco import Twin, possible

from chasles import simulate
from chasles.conventions import convention
from chasles.robots import puma560, quadruped, random_tree
