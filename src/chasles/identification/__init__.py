"""Identify the parameters of a robot from measured motions and joint torques.

found = chasles.identify(robot, q=q, qd=qd, qdd=qdd, tau=tau)
found.robot      # a new robot with physically consistent parameters
found.report()   # parameters, their uncertainty and prediction errors
"""

from chasles.identification.calibration import Calibrated, calibrate
from chasles.identification.estimate import identify
from chasles.identification.excitation import Excitation, excite
from chasles.identification.online import OnlineEstimator, online_estimator
from chasles.identification.result import Identified

__all__ = [
    "Calibrated",
    "Excitation",
    "Identified",
    "OnlineEstimator",
    "calibrate",
    "excite",
    "identify",
    "online_estimator",
]
