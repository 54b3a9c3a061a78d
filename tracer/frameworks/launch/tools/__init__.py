"""Tools around the frameworks: their settings as the framework's own, or said to be not read."""
