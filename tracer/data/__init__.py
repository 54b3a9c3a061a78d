"""What ships with the engine: presets, models, hardware, calibrations, published measurements, schemas."""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).parent
"""Where the files lie. A plain path: importlib.resources takes longer to load than a short trip."""
