"""Exits with 1 if the cores that computed and copied while a trace was recorded did not share a cache.

shares_cache.py TRACE
"""

import json
import sys

FURTHEST_NS = 200  # kFurthestOverACache

with open(sys.argv[1], encoding="utf-8") as file:
    calibration = json.load(file)["environment"]["calibration"]
sys.exit(calibration["core_to_core"]["median_ns"] > FURTHEST_NS)
