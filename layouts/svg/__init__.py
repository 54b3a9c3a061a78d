"""A scene as an SVG string: the pen and its colours, the map, one hop on it, and pixels of both."""
