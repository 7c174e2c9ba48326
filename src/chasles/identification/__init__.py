"""Identification: parameters of a robot from measured motions and joint torques.

found = chasles.identify(robot, q=q, qd=qd, qdd=qdd, tau=tau)
found.robot      # a new robot with physically consistent parameters
found.report()   # parameters, their uncertainty and prediction errors
"""

from chasles.identification.estimate import identify
from chasles.identification.excitation import Excitation, excite
from chasles.identification.result import Identified

__all__ = ["Excitation", "Identified", "excite", "identify"]
