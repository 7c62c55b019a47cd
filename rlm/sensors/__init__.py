"""Checks of results by code: no model is asked, and no worker reaches them.

base        what a sensor is given and what it says
"""

from rlm.sensors.base import Sensor, SensorContext

__all__ = ["Sensor", "SensorContext"]
