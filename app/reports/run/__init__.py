"""The page Run: files of a recorded run in, who is late, the layout, and prediction beside recording out."""
