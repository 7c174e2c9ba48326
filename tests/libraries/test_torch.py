import numpy as np, torch, chasles
from support import close, state
