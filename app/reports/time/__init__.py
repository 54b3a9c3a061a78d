"""The page Time: one pass, pipelines, tokens against weights, and serving."""
