"""Checks of results by code: no model is asked, and no worker reaches them.

base          what a sensor is given and what it says
schema        JSON that fits a schema
cited         findings whose quotes stand in the records that they name
trial         Python code that passes tests, in a process of its own
child         that process
confining     what keeps it from doing harm
"""

from rlm.checks.sensors.base import Sensor, SensorContext
from rlm.checks.sensors.cited import citations
from rlm.checks.sensors.schema import json_schema
from rlm.checks.sensors.trial import python_tests

__all__ = ["Sensor", "SensorContext", "citations", "json_schema", "python_tests"]
