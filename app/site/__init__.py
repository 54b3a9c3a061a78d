"""The explorer as a folder of files: its pages, and the engine in a Python that runs inside the tab."""
